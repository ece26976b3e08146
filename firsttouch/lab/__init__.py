# SPDX-License-Identifier: GPL-2.0
"""A run of the laboratory: plan, cells, guests, the guard, results."""
