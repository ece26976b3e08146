# SPDX-License-Identifier: GPL-2.0
"""linux/ laid over a kernel tree: patches, hooks, the linked tree; and as a series to post.

The changed tree has the directories of the unchanged one, and symbolic links to its files; only
files that a patch adds or changes are real. So a relative #include finds a changed header.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from firsttouch.building.patches import copy_files, fit, names_in
from firsttouch.building.source import KernelSource
from firsttouch.catalog.kernels import Release
from firsttouch.errors import UserError
from firsttouch.files import LINUX, check_writable, digest, digest_file
from firsttouch.processes import output
from firsttouch.tables import read, read_toml

# Parts of a kernel tree that do not affect an image.
_NOT_BUILT = ("Documentation/", "tools/")
# In each folder of a linked tree: a link to that of the unchanged tree, through which its other
# links lead. One with a target of 60 bytes or more takes 200 times as long to remove on ext4.
_UNCHANGED = ".unchanged"


@dataclass(frozen=True)
class Patch:
    """One logical change: its commit message, its new files, its hooks.

    `author`, ``Name <address>``, is that of a change that others made.
    """

    name: str
    series: tuple[str, ...]
    subject: str
    message: str
    files: tuple[str, ...] = ()
    author: str = ""

    def hook(self, release: Release) -> Path | None:
        """Return the patch of existing files of `release`, if any."""
        path = release.hooks / f"{self.name}.patch"
        return path if path.is_file() else None

    def touched(self, release: Release) -> list[str]:
        hook = self.hook(release)
        return [*self.files, *(names_in(hook) if hook else ())]


@dataclass(frozen=True)
class Series:
    """What is posted together. A cover letter has a title, and a template, a file of linux/.

    Kernels with all series lack those built `alone`: no arm could switch such a one off.
    """

    name: str
    cover: str = ""
    title: str = ""
    alone: bool = False


def all_series() -> dict[str, Series]:
    """Return the series of linux/series.toml by name, in order."""
    listed = [read(entry, Series) for entry in read_toml(LINUX / "series.toml").tables("series")]
    return {series.name: series for series in listed}


EVERY = "every"


def patches_of(release: Release, series: str = "") -> list[Patch]:
    """Return the patches for `release`, in order: of all series not `alone`, of one or of EVERY.

    A patch without files and without a hook for the release is left out.
    """
    if not any(release.hooks.glob("*.patch")):
        raise UserError(f"linux/ has no hooks for {release.name}: choose `--arm stock`.")
    every = all_series().items()
    wanted = {n for n, each in every if series in (n, EVERY) or not (series or each.alone)}
    listed = [read(entry, Patch) for entry in read_toml(LINUX / "series.toml").tables("patch")]
    return [
        patch
        for patch in listed
        if wanted.intersection(patch.series) and (patch.files or patch.hook(release))
    ]


def overlay_identity(release: Release, series: str = "") -> str:
    """Return the digest of all files and hooks that affect an image of `release`."""
    contents = {}
    for patch in patches_of(release, series):
        hook = patch.hook(release)
        files = [name for name in patch.files if not name.startswith(_NOT_BUILT)]
        if hook or files:
            contents[patch.name] = {
                "hook": digest_file(hook) if hook else None,
                "files": {name: digest_file(LINUX / name) for name in files},
            }
    return digest(contents)


def lay_over(source: KernelSource, destination: Path, patches: Sequence[Patch]) -> None:
    """Make the tree of `source` with `patches` at `destination`."""
    link_tree(source.tree(), destination)
    for patch in patches:
        apply(patch, source.release, destination)


def apply(patch: Patch, release: Release, tree: Path) -> None:
    """Apply a patch to a linked tree; a hook that does not fit is named by file and line."""
    if there := [name for name in patch.files if (tree / name).exists()]:
        raise UserError(
            f"this source has {there[0]} already, so the series was applied to it before: "
            "give a source without it."
        )
    copy_files(patch.files, LINUX, tree)
    hook = patch.hook(release)
    if hook and (why := fit(hook, tree)):
        raise UserError(
            f"the hooks of {release.name} do not apply to this source ({why}, for "
            f"hooks/{release.name}/{hook.name}): give a tree nearer to {release.name}."
        )


def link_tree(tree: Path, destination: Path) -> None:
    """Make a copy of `tree` at `destination`: real directories, symbolic links for files."""
    top, to = str(tree), str(destination)
    # A kernel has 90,000 files, so this makes no Path of each.
    for folder, folders, files in os.walk(top):
        folders[:] = [name for name in folders if name != ".git"]
        here = to + folder[len(top) :]
        os.makedirs(here)
        # That of a folder leads through its parent's, so that no target is long.
        through = f"../{_UNCHANGED}/{os.path.basename(folder)}" if folder != top else top
        os.symlink(through, f"{here}/{_UNCHANGED}")
        for name in (*files, *folders):
            path = f"{folder}/{name}"
            if os.path.islink(path):
                # Copied, so that it leads into the copy.
                os.symlink(os.readlink(path), f"{here}/{name}")
            elif not os.path.isdir(path):
                os.symlink(f"{_UNCHANGED}/{name}", f"{here}/{name}")


# Fixed, so that the bytes of the patches do not depend on the time.
_DATE = "2026-01-01T00:00:00+0000"
# In linux/, in the place of the author of the series.
_MAINTAINER = "M:\tAUTHOR\n"
_NUMBERED = "[0-9][0-9][0-9][0-9]-*.patch"


def write_series(
    source: KernelSource, series: Series, destination: Path, author: str
) -> list[Path]:
    """Write `series` for `source` into directory `destination`; return its files in order.

    `author` is ``Name <address>``. Numbered patches that are in the directory already are
    removed: they would be applied with the new ones. Raises HostError if it cannot be written.
    """
    patches = patches_of(source.release, series.name)
    # Once: each call looks at the 90,000 files of a stored tree.
    tree = source.tree()
    check_writable(destination)
    for stale in destination.glob(_NUMBERED):
        stale.unlink()
    with tempfile.TemporaryDirectory(prefix="firsttouch-series-") as scratch:
        work = Path(scratch)
        for patch in patches:
            copy_files(patch.touched(source.release), tree, work)
        _git(work, author, "init", "-q")
        _commit(work, author, f"Linux {source.version}", author)
        for patch in patches:
            apply(patch, source.release, work)
            if (file := work / "MAINTAINERS").exists():
                file.write_text(file.read_text().replace(_MAINTAINER, f"M:\t{author}\n"))
            _commit(work, author, f"{patch.subject}\n\n{patch.message}", patch.author or author)
        _git(
            work, author, "format-patch", "-q", "--no-signature",
            *(["--cover-letter"] if series.cover else []),
            f"--from={author}", "-o", str(destination.resolve()), f"HEAD~{len(patches)}",
        )  # fmt: skip
    files = sorted(destination.glob(_NUMBERED))
    text = files[0].read_text()
    if series.cover:
        _, _, letter = (LINUX / series.cover).read_text().partition("-->\n")  # its licence
        text = text.replace("*** SUBJECT HERE ***", series.title)
        text = text.replace("*** BLURB HERE ***", f"{letter}\n{_base(source)}")
    else:
        # git am leaves out what stands below the mark.
        text = text.replace("\n---\n", f"\n---\n{_base(source)}\n\n", 1)
    files[0].write_text(text)
    return files


def _base(source: KernelSource) -> str:
    """Return what the series applies to: a commit if the source is a git tree."""
    if source.given and (source.given / ".git").exists():
        commit = output(["git", "-C", source.given, "rev-parse", "HEAD"]).strip()
        return f"base-commit: {commit}"
    return f"Applies to Linux {source.version}, the {source.kind} with SHA-256\n{source.sha256}."


def _commit(work: Path, committer: str, message: str, author: str) -> None:
    # Some folders of a kernel tree ignore what is new.
    _git(work, committer, "add", "-A", "-f")
    _git(work, committer, "commit", "--allow-empty", "-s", f"--author={author}", "-m", message)


def _git(work: Path, author: str, *arguments: str) -> None:
    name, _, address = author.rstrip(">").partition(" <")
    # Without the user's git configuration: hooks, signing, templates.
    environment = {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        **{f"GIT_{role}_NAME": name for role in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{role}_EMAIL": address for role in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{role}_DATE": _DATE for role in ("AUTHOR", "COMMITTER")},
    }
    output(["git", *arguments], cwd=work, env=environment)
