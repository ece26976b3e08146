# SPDX-License-Identifier: GPL-2.0
"""Patches that users give to `firsttouch try`: files, mails and threads, read and applied.

What is read is kept in the store, so that an edit during a build changes nothing.
"""

from __future__ import annotations

import email
import email.policy
import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterable, Sequence
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple

from firsttouch.building.source import KernelSource
from firsttouch.building.store import Entry
from firsttouch.errors import HostError, UserError
from firsttouch.files import digest_bytes
from firsttouch.processes import output

# Standard input.
STDIN = Path("-")
# `git format-patch --cover-letter` writes it beside the patches.
_COVER = "0000-cover-letter"
# A message ID, also in an archive's URL, of which Path has joined the slashes.
_MESSAGE = re.compile(r"(?:https?:/[^@]*/)?<?(?P<id>[^/@<>\s]+@[^/@<>\s]+)>?(?:/.*)?")
_ARCHIVE = "https://lore.kernel.org/all"
# Where a mail of a mailbox begins; lore's have another form of address.
_BEGIN = re.compile(rb"^(?=From \S+ +\w{3} \w{3} +\d+ \d\d:\d\d:\d\d \d{4}$)", re.M)
_MAIL = re.compile(rb"\A(?:From .*\n)?(?:[A-Za-z-]+:.*\n(?:[ \t].*\n)*)+\n")
_DIFF = re.compile(rb"^(?:diff --git |--- \S+.*\n\+\+\+ \S)", re.M)
_MARK = re.compile(r"^\s*\[([^\]]*)\]\s*")
_REPLY = re.compile(r"^\s*(?:re|aw|antw|fwd?):", re.I)
_OPTION = re.compile(rb"CONFIG_\w+=|# CONFIG_\w+ is not set$")
_SUFFIXES = re.compile(r"(\.(gz|patch|diff|mbox|mbx|eml|config))+$")


class _Mail(NamedTuple):
    """The patch in a mail, the `number`th of its series."""

    subject: str
    version: int
    number: int
    text: bytes


def names_in(patch: Path, given: str = "") -> tuple[str, ...]:
    """Return the files that a patch, from the file `given`, names; UserError for no patch."""
    listed, why = _git_apply(patch, Path("/"), "--numstat", "-z")
    if why:
        raise UserError(
            f"git cannot read {given or patch.name} ({why}): give what `git format-patch` writes."
        )
    # git names a file that moves by its new name only.
    text = patch.read_text(errors="replace")
    names = re.findall(r"^(?:rename|copy) from (.+)$", text, re.M)
    names += [record.split("\t", 2)[2] for record in listed.split("\0")[:-1]]
    for name in names:
        if ".." in Path(name).parts or Path(name).is_absolute():
            raise UserError(
                f"{patch.name} changes {name}: give a patch that stays in the kernel tree."
            )
    return tuple(dict.fromkeys(names))


def read_patches(given: Sequence[Path]) -> tuple[Path, ...]:
    """Return the patches in files, pipes, threads, and directories in the order of their names.

    A mailbox or thread gives the newest version of its series. Raises UserError for no patch.
    """
    patches: list[Path] = []
    for path in given:
        files = sorted(path.glob("*.patch*")) if path.is_dir() else [path]
        if not files:
            raise UserError(f"{path} has no *.patch: give patches, or the directory of a series.")
        for file in files:
            for patch in _patches_in(file):
                names_in(patch, _shown(file))
                patches.append(patch)
    return tuple(patches)


def read_fragment(given: Path) -> Path:
    """Return a fragment of a configuration; UserError if a line of it is something else."""
    text = _read(given)
    lines = [line.strip() for line in text.splitlines()]
    others = [line for line in lines if not _OPTION.match(line) and line[:1] not in (b"", b"#")]
    if others or not any(map(_OPTION.match, lines)):
        line = f": {others[0][:40].decode(errors='replace')!r}" if others else ""
        raise UserError(f"{_shown(given)} is no configuration{line}: write lines such as "
                        "CONFIG_X=y and # CONFIG_X is not set.")  # fmt: skip
    return _keep(f"{_stem(given)}.config", text)


def _patches_in(file: Path) -> list[Path]:
    if file.name.startswith(_COVER):
        return []
    if not file.exists() and (message := _MESSAGE.fullmatch(str(file))):
        file = _fetched(message["id"])
    text = _read(file)
    mails = _mails(text)
    if not mails and not _DIFF.search(text):
        raise UserError(f"{_shown(file)} is no patch: give the output of `git format-patch`, "
                        "diff, or a mail with a patch.")  # fmt: skip
    # git reads a mail as it is, unless it is encoded or has answers.
    alone = len(mails) == 1 and mails[0].text in text and not _BEGIN.search(text, 1)
    if alone or not mails:
        return [_keep(f"{_stem(file)}.patch", text)]
    kept = []
    for place, mail in enumerate(mails, 1):
        slug = re.sub(r"[^\w.]+", "-", _MARK.sub("", mail.subject)).strip("-.")[:52]
        kept.append(_keep(f"{place:04}-{slug or _stem(file)}.patch", mail.text))
    return kept


def _fetched(message: str) -> Path:
    """Return the mailbox of a message's thread, by b4 or from lore; UserError without either."""
    name = f"{message}.mbx"

    def make(workplace: Path, product: Path) -> None:
        try:
            if shutil.which("b4"):
                output(["b4", "am", "-o", workplace, message])
                (mailbox,) = workplace.glob("*.mbx")
                mailbox.rename(product / name)
            else:
                # Takes long to import.
                from urllib.parse import quote
                from urllib.request import urlopen

                with urlopen(f"{_ARCHIVE}/{quote(message)}/t.mbox.gz", timeout=60) as answer:
                    (product / name).write_bytes(answer.read())
        except (OSError, ValueError, HTTPException, HostError) as error:
            reason = getattr(error, "reason", error)
            why = str(getattr(reason, "strerror", "") or reason).rstrip(".")
            raise UserError(
                f"{message} cannot be fetched ({why}): check the network, or save its thread as "
                "a mailbox and give that file.",
                getattr(error, "detail", ()),
            ) from None

    return Entry("patches", {"message": message}, message, name).obtain(make)


def _mails(text: bytes) -> list[_Mail]:
    """Return the mails with a patch in a mail or a mailbox: of one version, in order."""
    if not _MAIL.match(text):
        return []
    # A mail to two lists is in a mailbox twice.
    by_subject = {mail.subject: mail for part in _BEGIN.split(text) if (mail := _mail(part))}
    # A reply may have a diff of its own, which is no part of the series.
    mails = [mail for mail in by_subject.values() if not _REPLY.match(mail.subject)]
    mails = mails or list(by_subject.values())
    newest = max((mail.version for mail in mails), default=1)
    return sorted((mail for mail in mails if mail.version == newest), key=lambda mail: mail.number)


def _mail(part: bytes) -> _Mail | None:
    """Return the mail in a part of a mailbox; None if it has no patch."""
    # A mailbox marks such a line of a mail, so that it begins no other one.
    unquoted = re.sub(rb"^>(>*From )", rb"\1", part, flags=re.M)
    message = email.message_from_bytes(unquoted, policy=email.policy.default)
    # Attached patches too.
    bodies = [
        payload
        for body in message.walk()
        if body.get_content_maintype() in ("text", "application")
        and isinstance(payload := body.get_payload(decode=True), bytes)
    ]
    text = b"\n".join(bodies).replace(b"\r\n", b"\n")
    if not _DIFF.search(text):
        return None
    subject = " ".join(str(message.get("Subject", "")).split())
    words = mark[1] if (mark := _MARK.match(subject)) else ""
    found = re.search(r"\bv(\d+)\b", words, re.I), re.search(r"\b(\d+)/\d+\b", words)
    version, number = (int(match[1]) if match else 1 for match in found)
    text += b"\n" * (not text.endswith(b"\n"))
    return _Mail(subject, version, number, text)


def _read(file: Path) -> bytes:
    """Return what a file or a pipe has, unpacked."""
    try:
        data = sys.stdin.buffer.read() if file == STDIN else file.read_bytes()
        return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    except (OSError, EOFError, zlib.error) as error:
        why = f"{_shown(file)} cannot be read ({getattr(error, 'strerror', '') or error})"
        raise UserError(f"{why}: give a file, or a URL of lore.kernel.org.") from None


def _keep(name: str, text: bytes) -> Path:
    return Entry("patches", {"name": name, "text": digest_bytes(text)}, name, name).keep(text)


def _stem(file: Path) -> str:
    return "standard-input" if file == STDIN else _SUFFIXES.sub("", file.name) or "patch"


def _shown(file: Path) -> str:
    return "standard input" if file == STDIN else str(file)


def check_patches(patches: Sequence[Path], source: KernelSource) -> None:
    """Raise UserError if a user's patches do not apply to `source`, one after the other."""
    with tempfile.TemporaryDirectory(prefix="firsttouch-patches-") as scratch:
        tree = source.tree()
        for patch in patches:
            copy_files(names_in(patch), tree, Path(scratch))
        apply_patches(patches, source.version, Path(scratch))


def copy_files(names: Iterable[str], tree: Path, to: Path) -> None:
    """Copy those of the files that are in a kernel tree, or in linux/, with their modes."""
    for name in names:
        if (tree / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(tree / name, to / name)


def apply_patches(patches: Sequence[Path], version: str, tree: Path) -> None:
    """Apply a user's patches to the linked tree `tree`; UserError names the file and the line."""
    for patch in patches:
        if why := fit(patch, tree):
            raise UserError(
                f"{patch.name} does not apply to Linux {version} ({why}): rebase it, or give the "
                "tree that it was made for by --source."
            )


def fit(patch: Path, tree: Path) -> str:
    """Apply a patch to the linked tree `tree`; return why it does not apply, empty if it does."""
    for name in names_in(patch):
        if (link := tree / name).is_symlink():
            original = link.resolve()
            link.unlink()
            shutil.copy(original, link)
    # All hunks or none, at any offset, without fuzz.
    _, why = _git_apply(patch, tree)
    if why and not _git_apply(patch, tree, "--reverse", "--check")[1]:
        return "it has the change already"
    return why


def _git_apply(patch: Path, tree: Path, *options: str) -> tuple[str, str]:
    """Return what `git apply` prints, and why it fails, empty if it does not."""
    # Outside a repository: in one, git leaves out files that are not below this directory.
    alone = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CEILING_DIRECTORIES": str(tree.parent)}
    words = ["git", "-c", "core.quotePath=false", "apply", "--whitespace=nowarn", *options]
    done = subprocess.run(
        [*words, patch.resolve()], cwd=tree, env={**os.environ, **alone, "LC_ALL": "C"},
        capture_output=True, text=True, errors="replace", check=False,
    )  # fmt: skip
    said = [*done.stderr.strip().splitlines(), "git apply failed"]
    return done.stdout, said[0].removeprefix("error: ") if done.returncode else ""
