# SPDX-License-Identifier: GPL-2.0
"""Shows a dataset to people and programs: on the terminal, as a page, as figures, as JSON."""
