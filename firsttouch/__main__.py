# SPDX-License-Identifier: GPL-2.0
"""``python -m firsttouch``."""

import sys

from firsttouch.cli.main import main

sys.exit(main())
