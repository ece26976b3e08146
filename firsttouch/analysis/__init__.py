# SPDX-License-Identifier: GPL-2.0
"""What results say: measurements derived from them, rows across arms, verdicts, sentences."""
