# SPDX-License-Identifier: GPL-2.0
"""Writes the kernel series as patches for `git am`, one logical change each."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from firsttouch.build import overlay
from firsttouch.build.sources import KernelSource
from firsttouch.errors import HostError
from firsttouch.processes import output

# Fixed, so that the bytes of the patches do not depend on the time.
_DATE = "2026-01-01T00:00:00+0000"


def write_series(source: KernelSource, destination: Path, author: str) -> list[Path]:
    """Write the series for `source` into directory `destination`; return its files in order.

    `author` is ``Name <address>``. git makes the patches from the same trees
    that the laboratory builds. Raises UserError if a hook does not apply,
    HostError if the directory cannot be written.
    """
    patches = overlay.series(source.release)
    tree = source.tree()
    with tempfile.TemporaryDirectory(prefix="firsttouch-series-") as scratch:
        work = Path(scratch, "linux")
        for name in {name for patch in patches for name in touched_files(patch, source)}:
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            if (tree / name).exists():
                shutil.copyfile(tree / name, work / name)
        _git(work, author, "init", "-q")
        _commit(work, author, f"Linux {source.version}")
        for patch in patches:
            overlay.apply(patch, source.release, work)
            _commit(work, author, f"{patch.subject}\n\n{patch.message}")
        _git(
            work,
            author,
            "format-patch",
            "-q",
            "--no-signature",
            "-o",
            "../series",
            f"HEAD~{len(patches)}",
        )
        try:
            destination.mkdir(parents=True, exist_ok=True)
            return [
                Path(shutil.copyfile(file, destination / file.name))
                for file in sorted(Path(scratch, "series").iterdir())
            ]
        except OSError as error:
            raise HostError(
                f"cannot write the series to {destination} ({error.strerror}): "
                "name another directory by --out."
            ) from None


def touched_files(patch: overlay.Patch, source: KernelSource) -> list[str]:
    """Return the paths, in the kernel tree, of all files that `patch` adds or changes."""
    hook = patch.hook(source.release)
    return [*patch.files, *(overlay.changed_files(hook) if hook else ())]


def _commit(work: Path, author: str, message: str) -> None:
    _git(work, author, "add", "-A")
    _git(work, author, "commit", "-q", "--allow-empty", "-m", message)


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
    work.mkdir(exist_ok=True)
    output(["git", *arguments], cwd=work, env=environment)
