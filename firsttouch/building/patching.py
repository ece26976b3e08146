# SPDX-License-Identifier: GPL-2.0
"""Patches applied to a kernel tree without a second copy of the tree.

The changed tree consists of symbolic links into the unchanged one; only files
that a patch adds or changes are real. Directories are real where a relative
#include may find a changed header, which must not be the unchanged one.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from firsttouch.building.sources import KernelSource
from firsttouch.building.store import read_manifest, store_root
from firsttouch.catalog.architectures import DEFAULT_ARCHITECTURE, load_architecture
from firsttouch.errors import UserError

# Folders of which a build reads nothing, or nothing that includes a file outside them.
_LINKED_WHOLE = (
    "Documentation", "samples", "tools", "LICENSES", "arch/arm/boot/dts", "arch/arm64/boot/dts",
)  # fmt: skip
# Large folders of sources that include no file outside them by "..", but files of these folders.
# Behind a link, ".." leads into the unchanged tree.
LARGE_FOLDERS: Mapping[str, tuple[str, ...]] = {
    "drivers/clk": (),
    "drivers/gpu": (),
    "drivers/iio": (),
    "drivers/media": (),
    "drivers/net": ("drivers/scsi",),
    "drivers/staging": ("arch/arm/mach-omap2",),
    "sound": ("drivers/soundwire",),
}
# In each folder of a linked tree: a link to the same folder of the unchanged tree, through which
# the folder's other links lead. Of a link with a target of 60 bytes or more, ext4 keeps the target
# in a block of its own: one takes 200 times as long to remove.
_UNCHANGED = ".unchanged"


def link_tree(
    tree: Path,
    destination: Path,
    changed: Iterable[str] | None = None,
    architecture: str = DEFAULT_ARCHITECTURE,
) -> None:
    """Make a copy of `tree` at `destination`: real directories, symbolic links for files.

    For a tree in which only the files `changed` will be, a folder is one link if
    no image for `architecture` needs it, or if it is large and includes none of
    these files by "..", unless one of them is there.
    """
    whole: set[str] = set()
    if changed is not None:
        names = tuple(changed)
        needed = load_architecture(architecture).folders
        others = {
            f"arch/{folder.name}"
            for folder in (tree / "arch").glob("*/")
            if folder.name not in needed
        }
        reads = {**dict.fromkeys([*others, *_LINKED_WHOLE], ()), **LARGE_FOLDERS}
        whole = {
            str(tree / folder)
            for folder, more in reads.items()
            if not any(name.startswith(f"{read}/") for read in (folder, *more) for name in names)
        }
    top, to = str(tree), str(destination)
    # A kernel has 90,000 files, so this makes no Path of each.
    for folder, folders, files in os.walk(top):
        if ".git" in folders:
            folders.remove(".git")
        here = to + folder[len(top) :]
        os.makedirs(here)
        # That of a folder leads through its parent's, so that no target is long.
        through = f"../{_UNCHANGED}/{os.path.basename(folder)}" if folder != top else top
        os.symlink(through, f"{here}/{_UNCHANGED}")
        for name in files:
            file = f"{folder}/{name}"
            # A symbolic link of the tree is copied, so that it leads into the copy.
            to_file = os.readlink(file) if os.path.islink(file) else f"{_UNCHANGED}/{name}"
            os.symlink(to_file, f"{here}/{name}")
        for name in list(folders):
            below = f"{folder}/{name}"
            if os.path.islink(below):
                os.symlink(os.readlink(below), f"{here}/{name}")
            elif below in whole:
                os.symlink(f"{_UNCHANGED}/{name}", f"{here}/{name}")
                folders.remove(name)


def apply_patch(patch: Path, version: str, tree: Path, level: int | None = None) -> None:
    """Apply a user's patch to the linked tree `tree` of Linux `version`.

    `level` is its `strip_level`, if the tree alone cannot tell it. Raises
    UserError if it does not apply; it names the file and the hunk.
    """
    if why := fit(patch, tree, strip_level(patch, tree) if level is None else level):
        raise UserError(
            f"{patch} does not apply to Linux {version} ({why}): rebase it, or give the tree "
            "that it was made for by --source."
        )


def check_patches(patches: Sequence[Path], source: KernelSource) -> None:
    """Raise UserError if a user's patches do not apply to `source`, one after the other.

    Only the files that they change are copied, so this takes no time.
    """
    try:
        _check(patches, source.tree(), source.version)
    except UserError as error:
        older = _older_tree(patches, source)
        if older is None:
            raise
        title, tree = older
        raise UserError(
            f"{str(error).partition(': ')[0]}, but to {title}, which the store has: rebase the "
            f"patches, or add --source {tree}."
        ) from None


def _check(patches: Sequence[Path], tree: Path, version: str) -> None:
    with tempfile.TemporaryDirectory(prefix="firsttouch-patches-") as scratch:
        copy_changed(patches, tree, version, Path(scratch))


def copy_changed(patches: Sequence[Path], tree: Path, version: str, copy: Path) -> None:
    """Make at `copy` the files of `tree` that patches change, with the patches applied.

    Raises UserError if a patch does not apply.
    """
    for patch in patches:
        for name in files_of(patch, tree):
            if (tree / name).is_file() and not (copy / name).exists():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(tree / name, copy / name)
    for patch in patches:
        apply_patch(patch, version, copy, strip_level(patch, tree))


def _older_tree(patches: Sequence[Path], source: KernelSource) -> tuple[str, Path] | None:
    """Return the newest other source of the release in the store to which patches apply."""
    trees = []
    for path in (store_root() / "trees").glob("*"):
        manifest = read_manifest(path)
        if path == source.tree():
            continue
        if manifest and manifest.title.startswith(f"{source.release.package} "):
            trees.append((_numbers(manifest.title), manifest.title, path))
    for _, title, tree in sorted(trees, reverse=True):
        with contextlib.suppress(UserError):
            _check(patches, tree, title)
            return title, tree
    return None


def _numbers(title: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", title)]


def strip_level(patch: Path, tree: Path) -> int:
    """Return how many folders patch(1) strips from the names in `patch`: 1, or 0.

    Git and diff -r write a folder before each path of the tree. Git with
    diff.noprefix, and quilt with -p0, do not.
    """
    text = patch.read_text("utf-8", "replace")
    given = set(re.findall(r"^(?:diff --git|---|\+\+\+) (\S+)", text, re.M)) - {"/dev/null"}
    names = [given, {name.partition("/")[2] for name in given}]
    there = [sum((tree / name).is_file() for name in of_level) for of_level in names]
    if any(there):
        # mm/Makefile is a file of the tree without its folder, too.
        return int(there[1] > there[0])
    # It only adds files, and most likely to folders that exist.
    return int(not all((tree / name).parent.is_dir() for name in given))


def fit(patch: Path, tree: Path, level: int = 1) -> str:
    """Apply a patch to the linked tree `tree`; return why it does not apply, empty if it does."""
    for name in changed_files(patch, level):
        _replace_link(tree / name)
    for name in _changed_files(patch, "---", level):
        if not (tree / name).exists():
            return f"it has no {name}"
    # No fuzz: a hunk may be wrong where the lines around it have changed.
    done = subprocess.run(
        ["patch", f"-p{level}", "-F0", "-N", "-r-", "--no-backup-if-mismatch", "-i", str(patch)],
        cwd=tree,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    return _failed_hunk(done.stdout) if done.returncode else ""


def _failed_hunk(said: str) -> str:
    """Return which hunk of which file failed, from `said`, the output of patch(1)."""
    file = "a file"
    for line in said.splitlines():
        if match := re.match(r"patching file '?([^']+)'?", line):
            file = match[1]
        elif match := re.match(r"Hunk #(\d+) FAILED at (\d+)", line):
            return f"hunk {match[1]}, at line {match[2]}, of {file} does not fit"
        elif "previously applied" in line:
            return f"{file} has the change already"
    return f"{file} does not fit: {said.strip()[-200:]}"


def files_of(patch: Path, tree: Path) -> list[str]:
    """Return the files of `tree` that a user's patch changes, as `changed_files` does."""
    return changed_files(patch, strip_level(patch, tree))


def changed_files(patch: Path, level: int = 1) -> list[str]:
    """Return the paths, in the kernel tree, of the files that a patch changes, adds or removes.

    `level` is its `strip_level`. Raises UserError if a path is outside the tree.
    """
    names = dict.fromkeys(
        name for mark in ("---", "+++") for name in _changed_files(patch, mark, level)
    )
    # Git names a file that is empty, or of which only the mode changes, nowhere else.
    folder = r"[^/\s]+/" if level else ""
    text = patch.read_text("utf-8", "replace")
    for both in re.findall(rf"^diff --git {folder}(\S+) {folder}(\S+)$", text, re.M):
        names.update(dict.fromkeys(both))
    for name in names:
        if ".." in Path(name).parts or Path(name).is_absolute():
            raise UserError(f"{patch} changes {name}: give a patch that stays in the kernel tree.")
    return list(names)


def _changed_files(patch: Path, mark: str, level: int = 1) -> list[str]:
    """Return the paths after `mark`, of the old or the new files, without /dev/null."""
    text = patch.read_text("utf-8", "replace")
    renamed = "rename from" if mark == "---" else "rename to"
    moved = re.findall(rf"^{renamed} (\S+)$", text, re.M)
    # A patch may name the root of a file system: the check of its caller refuses that.
    folder = r"[^/\s]+/" if level else ""
    names = re.findall(rf"^{re.escape(mark)} {folder}(\S+)", text, re.M)
    return [*(name for name in names if name != "/dev/null"), *moved]


def _replace_link(path: Path) -> None:
    """Replace a link into the unchanged tree by a copy that the series may change."""
    if path.is_symlink():
        original = path.resolve()
        contents, mode = original.read_bytes(), original.stat().st_mode
        path.unlink()
        path.write_bytes(contents)
        path.chmod(mode)
