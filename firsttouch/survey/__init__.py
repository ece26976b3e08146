# SPDX-License-Identifier: GPL-2.0
"""The survey: the experiments on the host and its own kernel, and what follows from them.

The flow, a module for each step::

    host ─► tasks ─► on_host, in_guest ─► samples ─► geometry, findings ─► sentences, advice
                                                             └─► printing, keeping ─► document

It runs ftbench for each task, interleaved, and keeps every line that is printed.
`comparison` reads two documents and sets them side by side.
"""
