# SPDX-License-Identifier: GPL-2.0
"""What the repository may weigh, counted over tracked files."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from firsttouch.files import REPOSITORY

# A ceiling is only lowered, in the commit that removes something. A commit that needs more
# removes something else first.
_CEILINGS = (
    ("firsttouch/*.py", "files", 97),
    ("firsttouch/*.py", "lines", 16_529),
    ("docs/evidence/draw/*.py", "lines", 699),
    ("tests/*.py", "lines", 17_837),
    ("docs/*.md", "bytes", 180_000),
    ("README.md", "bytes", 6_000),
    ("CHANGELOG.md", "bytes", 6_000),
)


def test_nothing_outgrows_its_ceiling() -> None:
    rows = [(what, unit, _measure(what, unit), ceiling) for what, unit, ceiling in _CEILINGS]
    table = "\n".join(
        f"{what:24} {found:>9,} of {ceiling:>9,} {unit}{'  OVER' if found > ceiling else ''}"
        for what, unit, found, ceiling in rows
    )
    assert all(0 < found <= ceiling for _, _, found, ceiling in rows), f"\n{table}"


def _measure(pathspec: str, unit: str) -> int:
    files = _tracked(pathspec)
    if unit == "files":
        return len(files)
    contents = [file.read_bytes() for file in files]
    return sum(len(text) if unit == "bytes" else text.count(b"\n") for text in contents)


def _tracked(pathspec: str) -> Sequence[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", pathspec], cwd=REPOSITORY, capture_output=True, check=True
    )
    paths = [REPOSITORY / name.decode() for name in listed.stdout.split(b"\0") if name]
    # A file that is removed and not yet committed weighs nothing.
    return [path for path in paths if path.is_file()]
