# SPDX-License-Identifier: GPL-2.0
"""What people and programs see of a dataset: the terminal, the report, its figures, JSON."""
