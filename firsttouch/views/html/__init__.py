# SPDX-License-Identifier: GPL-2.0
"""report.html: a dataset as one self-contained page."""
