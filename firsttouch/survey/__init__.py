# SPDX-License-Identifier: GPL-2.0
"""The survey: first touches and set conflicts on this host and its own kernel.

    host ─► tasks ─► run ─► findings ─► sentences, printing, document

`run` executes ftbench once for each task, in interleaved rounds.
"""
