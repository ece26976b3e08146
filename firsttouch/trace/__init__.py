# SPDX-License-Identifier: GPL-2.0
"""The page faults of any program: which of them are double, where, and what removes them.

`recording` starts the recorder, `records` reads its file, `instructions` and
`spaces` say what a fault was, `doubles` finds the pairs, `symbols` names the
places, `sites` puts together what belongs together.
"""
