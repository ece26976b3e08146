# SPDX-License-Identifier: GPL-2.0
"""One guest: what it is, the bytes and arguments QEMU gets for it, and what it sends back."""
