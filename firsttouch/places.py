# SPDX-License-Identifier: GPL-2.0
"""Where the project's own files are: the folders whose contents are data to the laboratory.

A user's own machines, experiments and arms are found beside the project's:
in folders of the same names below ``$XDG_CONFIG_HOME/firsttouch``.
"""

from __future__ import annotations

import os
from pathlib import Path

from firsttouch.errors import UserError

_PACKAGE = Path(__file__).resolve().parent
# An installed package carries the folders; in a checkout they are at its top.
REPOSITORY = _PACKAGE / "data" if (_PACKAGE / "data").is_dir() else _PACKAGE.parent
LINUX = REPOSITORY / "linux"
EXPERIMENTS = REPOSITORY / "experiments"
MACHINES = REPOSITORY / "machines"
ARMS = REPOSITORY / "arms"


def users_folder() -> Path:
    """Return the folder of the user's own entries, which need not be there.

    Raises UserError if the environment names a relative one.
    """
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    if not Path(base).is_absolute():
        raise UserError(f"XDG_CONFIG_HOME is {base!r}: set it to an absolute path.")
    return Path(base) / "firsttouch"


def search_path(folder: Path) -> tuple[Path, ...]:
    """Return where the entries of `folder` are: there, and for the project's, the user's too."""
    if folder in (EXPERIMENTS, MACHINES, ARMS):
        return folder, users_folder() / folder.name
    return (folder,)
