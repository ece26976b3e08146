# SPDX-License-Identifier: GPL-2.0
"""One guest: its description, the bytes and arguments that QEMU gets, and what it sends back."""
