# SPDX-License-Identifier: GPL-2.0
"""Where the laboratory's data files are.

Users can add machines, experiments, arms and settings of their own in folders of the
same names below ``$XDG_CONFIG_HOME/firsttouch``.
"""

from __future__ import annotations

import os
from pathlib import Path

from firsttouch.errors import UserError

_PACKAGE = Path(__file__).resolve().parent
# An installed package has the folders in data/, a checkout has them at its top.
REPOSITORY = _PACKAGE / "data" if (_PACKAGE / "data").is_dir() else _PACKAGE.parent
LINUX = REPOSITORY / "linux"
EXPERIMENTS = REPOSITORY / "experiments"
MACHINES = REPOSITORY / "machines"
ARMS = REPOSITORY / "arms"
ARCHITECTURES = REPOSITORY / "architectures"
SETTINGS = REPOSITORY / "settings"


def users_folder() -> Path:
    """Return the folder of the user's own entries, which may not exist.

    Raises UserError if XDG_CONFIG_HOME is a relative path.
    """
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    if not Path(base).is_absolute():
        raise UserError(f"XDG_CONFIG_HOME is {base!r}: set it to an absolute path.")
    return Path(base) / "firsttouch"


def search_path(folder: Path) -> tuple[Path, ...]:
    """Return the folders to search for entries of `folder`: it, and the user's folder of its name.

    Only the project's own folders have such a counterpart.
    """
    if folder in (EXPERIMENTS, MACHINES, ARMS, SETTINGS):
        return folder, users_folder() / folder.name
    return (folder,)
