# SPDX-License-Identifier: GPL-2.0
"""Builds everything that a guest needs; the store keeps it under the digest of its recipe."""
