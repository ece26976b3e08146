# SPDX-License-Identifier: GPL-2.0
"""`firsttouch trace`: records the page faults of any program, and shows what the finder finds."""
