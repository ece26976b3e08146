# SPDX-License-Identifier: GPL-2.0
"""report.html: a dataset as one page that needs nothing beside itself."""
