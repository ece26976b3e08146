# SPDX-License-Identifier: GPL-2.0
"""Everything that is made before a guest runs, kept in the store under the digest of its recipe."""
