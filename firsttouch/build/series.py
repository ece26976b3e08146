# SPDX-License-Identifier: GPL-2.0
"""Writes a series as patches for `git am`, one logical change each, with a cover letter."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import textwrap
from pathlib import Path

from firsttouch.build import overlay
from firsttouch.build.sources import KernelSource
from firsttouch.errors import HostError
from firsttouch.files import write_atomically
from firsttouch.places import REPOSITORY
from firsttouch.processes import output

# Fixed, so that the bytes of the patches do not depend on the time.
_DATE = "2026-01-01T00:00:00+0000"
_OBJECTIONS = REPOSITORY / "docs/objections.md"
_EVIDENCE = REPOSITORY / "docs/evidence"


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
        for name in {name for patch in patches for name in touched_files(patch, source)}:
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            if (tree / name).exists():
                shutil.copyfile(tree / name, work / name)
        _git(work, author, "init", "-q")
        _commit(work, author, f"Linux {source.version}", author)
        for patch in patches:
            overlay.apply(patch, source.release, work)
            _commit(work, author, f"{patch.subject}\n\n{patch.message}", patch.author or author)
        _git(
            work, author, "format-patch", "-q", "--no-signature", "--cover-letter",
            f"--from={author}", "-o", str(made), f"HEAD~{len(patches)}",
        )  # fmt: skip
        cover = made / "0000-cover-letter.patch"
        cover.write_text(
            cover.read_text()
            .replace("*** SUBJECT HERE ***", series.title)
            .replace("*** BLURB HERE ***", f"{_letter(series)}\n{_base(source)}")
        )
        return _replace_patches(destination, made)


def touched_files(patch: overlay.Patch, source: KernelSource) -> list[str]:
    """Return the paths, in the kernel tree, of all files that `patch` adds or changes."""
    hook = patch.hook(source.release)
    return [*patch.files, *(overlay.changed_files(hook) if hook else ())]


def _letter(series: overlay.Series) -> str:
    """Return the text of the cover letter, with the figures and answers that it names."""
    _, _, text = series.cover.read_text().partition("-->\n")  # its licence
    text = re.sub(r"^\{objections: (.*)\}$", lambda found: _answers(found[1]), text, flags=re.M)
    return re.sub(r"^\{figures: (.*)\}$", lambda found: _figures(found[1]), text, flags=re.M)


def _answers(section: str) -> str:
    """Return the objections of a section of docs/objections.md, each with its answer."""
    _, _, rest = _OBJECTIONS.read_text().partition(f"## {section}\n")
    rows = re.findall(r"^\| (.+?) \| (.+?) \| .+ \|$", rest.partition("\n## ")[0], re.M)
    paragraphs = [f"- {objection.rstrip('.')}: {answer.rstrip('.')}." for objection, answer in rows]
    return "\n".join(textwrap.fill(text, 75, subsequent_indent="  ") for text in paragraphs[1:])


def _figures(block: str) -> str:
    """Return a block of figures of docs/evidence/, with the commands that give them."""
    marked = re.compile(rf"<!-- evidence: {re.escape(block)} -->\n(.*?)<!-- end -->", re.S)
    shown = [
        figures for page in _EVIDENCE.glob("*.md") for figures in marked.findall(page.read_text())
    ]
    assert shown, f"docs/evidence/ shows no block {block}"
    return str(shown[0]).strip()


def _base(source: KernelSource) -> str:
    """Return what the series applies to: a commit if the source is a git tree."""
    if source.given and (source.given / ".git").exists():
        commit = output(["git", "-C", str(source.given), "rev-parse", "HEAD"]).strip()
        return f"base-commit: {commit}"
    return f"Applies to Linux {source.version}."


def _replace_patches(destination: Path, made: Path) -> list[Path]:
    try:
        destination.mkdir(parents=True, exist_ok=True)
        for stale in destination.glob("[0-9][0-9][0-9][0-9]-*.patch"):
            stale.unlink()
        files = []
        for file in sorted(made.iterdir()):
            write_atomically(destination / file.name, file.read_bytes())
            files.append(destination / file.name)
        return files
    except OSError as error:
        raise HostError(
            f"cannot write the series to {destination} ({error.strerror}): "
            "name another directory by --out."
        ) from None


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
