# SPDX-License-Identifier: GPL-2.0
"""The survey: the experiments on one machine with its own kernel, and what follows from them.

The flow, one module each::

    facts ─► plan ─► samples ─► geometry, findings ─► sentences ─► terminal, survey.json
             tasks   one JSON line a task and round
"""
