# SPDX-License-Identifier: GPL-2.0
"""The command line: a file for each command or two, with its options and its code."""
