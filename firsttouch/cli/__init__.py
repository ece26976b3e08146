# SPDX-License-Identifier: GPL-2.0
"""The command line: a file for each command, its options and what it does with them."""
