# SPDX-License-Identifier: GPL-2.0
"""The survey: the experiments on the host and its own kernel, with conclusions and advice.

The flow, a module for each step::

    host ─► tasks ─► on_host, in_guest ─► samples ─► geometry, findings ─► sentences, advice
                                                             └─► printing, keeping ─► document

It runs ftbench for each task, in interleaved rounds, and keeps every line that
ftbench prints. `comparison` reads two documents and compares them.
"""
