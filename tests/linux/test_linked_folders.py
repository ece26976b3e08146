# SPDX-License-Identifier: GPL-2.0
"""Folders that a changed tree has as one link include no file that a patch may have changed."""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from firsttouch.building.overlay import LARGE_FOLDERS
from firsttouch.building.source import KernelSource
from firsttouch.catalog.releases import release_names

pytestmark = pytest.mark.long

_SOURCE = re.compile(r'^\s*#\s*include\s+"(\S*\.\./\S*)"', re.M)
_MAKEFILE = re.compile(r"-I\s*(?:\$\(srctree\)/)?\$\(src\)/(\S*\.\.\S*)")


def _outside(tree: Path, top: str) -> Iterator[str]:
    """Return the files, or folders of headers, that `top` names by ".." and that are outside."""
    for folder, _, files in os.walk(tree / top):
        here = os.path.relpath(folder, tree)
        for name in files:
            if name.endswith((".c", ".h", ".S")):
                form = _SOURCE
            elif name.startswith(("Makefile", "Kbuild")):
                form = _MAKEFILE
            else:
                continue
            for path in form.findall(Path(folder, name).read_text(errors="replace")):
                read = os.path.normpath(f"{here}/{path}")
                if not f"{read}/".startswith(f"{top}/"):
                    yield read


@pytest.mark.parametrize("release", release_names())
def test_a_large_folder_reads_no_others(
    sources: Callable[[str], KernelSource], release: str
) -> None:
    tree = sources(release).tree()
    for folder, others in LARGE_FOLDERS.items():
        allowed = tuple(f"{other}/" for other in others)
        assert not [read for read in _outside(tree, folder) if not read.startswith(allowed)]
        # A link of the tree would lead into the unchanged one, too.
        assert not [path for path in (tree / folder).rglob("*") if path.is_symlink()]
