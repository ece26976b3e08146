# SPDX-License-Identifier: GPL-2.0
"""The figures of README.md and docs/, drawn from the raw results that stand beside them."""
