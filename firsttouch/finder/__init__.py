# SPDX-License-Identifier: GPL-2.0
"""What a recording of page faults shows: double faults, by place, and what removes them.

`records` reads the recorder's file, `instructions` and `spaces` say what a
fault was, `doubles` finds the pairs, `symbols` names the places, `sites` puts
together what belongs together.
"""
