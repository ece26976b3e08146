# SPDX-License-Identifier: GPL-2.0
"""Derives from results: measurements, rows across arms, verdicts."""
