# SPDX-License-Identifier: GPL-2.0
"""What varies, as data: experiments, machines, arms and releases, loaded and checked."""
