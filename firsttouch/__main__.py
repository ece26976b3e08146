# SPDX-License-Identifier: GPL-2.0
"""The command ``firsttouch``, and ``python -m firsttouch``.

The imports take long enough for a user to press Ctrl-C, so the handlers are
installed before them. They stay until the process ends.
"""

import sys

from firsttouch.terminal import leave_on_signals


def run() -> int:
    leave_on_signals()
    from firsttouch.cli.main import main

    status = main()
    leave_on_signals()
    return status


if __name__ == "__main__":
    sys.exit(run())
