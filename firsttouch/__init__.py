# SPDX-License-Identifier: GPL-2.0
"""The laboratory that measures what the first touch of a page costs on arm64 Linux."""

__version__ = "0.1.0"
