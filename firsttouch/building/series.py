# SPDX-License-Identifier: GPL-2.0
"""Writes a series as patches for `git am`, one logical change each, with a cover letter."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from firsttouch.building import overlay
from firsttouch.building.source import KernelSource
from firsttouch.errors import HostError
from firsttouch.files import write_atomically
from firsttouch.processes import output

# Fixed, so that the bytes of the patches do not depend on the time.
_DATE = "2026-01-01T00:00:00+0000"
# In linux/, in the place of the author of the series.
_MAINTAINER = "M:\tAUTHOR\n"


def write_series(
    source: KernelSource, series: overlay.Series, destination: Path, author: str
) -> list[Path]:
    """Write `series` for `source` into directory `destination`; return its files in order.

    `author` is ``Name <address>``. git makes the patches from the same trees
    that the laboratory builds. Numbered patches that are in the directory
    already are removed: they would be applied with the new ones. Raises
    UserError if a hook does not apply, HostError if the directory cannot be
    written.
    """
    patches = overlay.patches_of(source.release, series.name)
    tree = source.tree()
    with tempfile.TemporaryDirectory(prefix="firsttouch-series-") as scratch:
        work, made = Path(scratch, "linux"), Path(scratch, "series")
        for name in {name for patch in patches for name in patch.touched(source.release)}:
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            if (tree / name).exists():
                shutil.copyfile(tree / name, work / name)
        _git(work, author, "init", "-q")
        _commit(work, author, f"Linux {source.version}", author)
        for patch in patches:
            overlay.apply(patch, source.release, work)
            if (file := work / "MAINTAINERS").exists():
                file.write_text(file.read_text().replace(_MAINTAINER, f"M:\t{author}\n"))
            _commit(work, author, f"{patch.subject}\n\n{patch.message}", patch.author or author)
        _git(
            work, author, "format-patch", "-q", "--no-signature",
            *(["--cover-letter"] if series.cover else []),
            f"--from={author}", "-o", str(made), f"HEAD~{len(patches)}",
        )  # fmt: skip
        first = min(made.iterdir())
        text = first.read_text()
        if series.cover:
            _, _, letter = series.cover.read_text().partition("-->\n")  # its licence
            text = text.replace("*** SUBJECT HERE ***", series.title)
            text = text.replace("*** BLURB HERE ***", f"{letter}\n{_base(source)}")
        else:
            # git am leaves out what stands below the mark.
            text = text.replace("\n---\n", f"\n---\n{_base(source)}\n\n", 1)
        first.write_text(text)
        try:
            destination.mkdir(parents=True, exist_ok=True)
            for stale in destination.glob("[0-9][0-9][0-9][0-9]-*.patch"):
                stale.unlink()
            for file in made.iterdir():
                write_atomically(destination / file.name, file.read_bytes())
            return [destination / file.name for file in sorted(made.iterdir())]
        except OSError as error:
            raise HostError(
                f"cannot write the series to {destination} ({error.strerror}): "
                "name another directory by --out."
            ) from None


def _base(source: KernelSource) -> str:
    """Return what the series applies to: a commit if the source is a git tree."""
    if source.given and (source.given / ".git").exists():
        commit = output(["git", "-C", str(source.given), "rev-parse", "HEAD"]).strip()
        return f"base-commit: {commit}"
    origin = "of Debian" if source.given is None else "given"
    named = f"the {source.kind} {origin} with SHA-256"
    return f"Applies to Linux {source.version}, {named}\n{source.sha256}."


def _commit(work: Path, committer: str, message: str, author: str) -> None:
    # Some folders of a kernel tree ignore what is new.
    _git(work, committer, "add", "-A", "-f")
    signed = ["-s"] if message.count("\n") else []
    _git(work, committer, "commit", "-q", "--allow-empty", *signed, f"--author={author}",
         "-m", message)  # fmt: skip


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
