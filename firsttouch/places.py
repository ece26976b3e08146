# SPDX-License-Identifier: GPL-2.0
"""Where the project's own files are: the folders whose contents are data to the laboratory."""

from __future__ import annotations

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
LINUX = REPOSITORY / "linux"
EXPERIMENTS = REPOSITORY / "experiments"
MACHINES = REPOSITORY / "machines"
ARMS = REPOSITORY / "arms"
