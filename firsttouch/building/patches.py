# SPDX-License-Identifier: GPL-2.0
"""What users give to `firsttouch try`: patches, mails, mailboxes and fragments, as plain files.

A plain file is used where it is. What comes through a pipe, is packed, or is
a mail is kept in the store as the plain file that it contains.
"""

from __future__ import annotations

import email
import email.header
import email.message
import gzip
import lzma
import re
import sys
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from firsttouch.building.store import Entry
from firsttouch.errors import UserError
from firsttouch.files import digest_bytes

# Standard input.
STDIN = Path("-")
# `git format-patch --cover-letter` writes it beside the patches.
_COVER = "0000-cover-letter"
_PACKED = {b"\x1f\x8b": gzip.decompress, b"\xfd7zXZ": lzma.decompress}
# The line before each mail of a mailbox, and its other form in lore's.
_FROM = re.compile(rb"^From \S+ +\w{3} \w{3} +\d+ \d\d:\d\d:\d\d \d{4}$", re.M)
_MAIL = re.compile(rb"\A(?:From .*\n)?(?:[A-Za-z-]+:.*\n(?:[ \t].*\n)*)+\n")
_DIFF = re.compile(rb"^(?:diff --git |--- \S+.*\n\+\+\+ \S)", re.M)
_CONTENT = re.compile(rb"^--- \S+.*\n\+\+\+ \S+|^GIT binary patch$", re.M)
_RENAMED = re.compile(rb"^rename from (\S+)\nrename to (\S+)$", re.M)
_MODE = re.compile(rb"^new mode \d+$", re.M)
_MARK = re.compile(r"^\s*\[([^\]]*)\]\s*")
_REPLY = re.compile(r"^\s*(?:re|aw|antw|fwd?):", re.I)


@dataclass(frozen=True)
class _Mail:
    """A mail with a patch: its place in the series, the version of that, and its text."""

    subject: str
    version: int
    number: int
    text: bytes


def read_patches(given: Sequence[Path]) -> tuple[Path, ...]:
    """Return the patches in files, in pipes, in directories in the order of their names.

    A mailbox or a thread of mails gives the newest version of its series, in
    order. Raises UserError for what is no patch, or cannot be read, and if all
    of them together change no file's contents.
    """
    patches: list[Path] = []
    changes = False
    unchanged = ""
    for path in given:
        files = [path]
        if path.is_dir():
            files = [file for file in sorted(path.glob("*.patch*")) if _is_part(file)]
            if not files:
                raise UserError(
                    f"{path} has no *.patch: give patches, or the directory of a series."
                )
        for file in files:
            for patch, text in _patches_in(file):
                patches.append(patch)
                changes |= bool(_CONTENT.search(text))
                unchanged = unchanged or _what_it_does(file, text)
    if patches and not changes:
        raise UserError(f"{unchanged}: give a patch that changes what the kernel does.")
    return tuple(patches)


def read_fragment(given: Path) -> Path:
    """Return the plain file of a fragment of a configuration, which may come through a pipe."""
    data = _read(given)
    if _is_plain(given, data):
        return given.resolve()
    return _keep(_name(given, "") + ".config", _unpack(given, data))


def _is_part(file: Path) -> bool:
    packed = file.suffix in (".gz", ".xz")
    return (file.stem if packed else file.name).endswith(".patch") and not file.name.startswith(
        _COVER
    )


def _patches_in(file: Path) -> list[tuple[Path, bytes]]:
    """Return the patches in one file, each with its text."""
    if file.name.startswith(_COVER):
        return []
    data = _read(file)
    text = _unpack(file, data)
    mails = _mails(text)
    if not mails:
        if not _DIFF.search(text):
            raise UserError(f"{_shown(file)} is no patch: give the output of `git format-patch`, "
                            "diff, or a mail with a patch.")  # fmt: skip
        if _is_plain(file, data):
            return [(file.resolve(), text)]
        return [(_keep(_name(file, "") + ".patch", text), text)]
    if len(mails) == 1 and _is_plain(file, data) and mails[0].text in text:
        # `git format-patch` writes a mail, which patch(1) reads as it is.
        return [(file.resolve(), text)]
    return [
        (_keep(f"{place:04}-{_name(file, mail.subject)}.patch", mail.text), mail.text)
        for place, mail in enumerate(mails, 1)
    ]


def _mails(text: bytes) -> list[_Mail]:
    """Return the mails with a patch in a mail or a mailbox: of one version, in order."""
    if not _MAIL.match(text):
        return []
    starts = [match.start() for match in _FROM.finditer(text)]
    ends = [*starts[1:], len(text)]
    parts = [text[a:b] for a, b in zip(starts, ends, strict=True)] if starts else [text]
    mails = [mail for part in parts if (mail := _mail(part))]
    # A reply may have a diff of its own, which is no part of the series.
    mails = [mail for mail in mails if not _REPLY.match(mail.subject)] or mails
    newest = max((mail.version for mail in mails), default=1)
    return sorted((mail for mail in mails if mail.version == newest), key=lambda mail: mail.number)


def _mail(part: bytes) -> _Mail | None:
    """Return the mail in a part of a mailbox; None if it has no patch."""
    head, _, rest = part.partition(b"\n")
    if not head.startswith(b"From "):
        rest = part
    # A mailbox marks such a line of a mail, so that it begins no other one.
    message = email.message_from_bytes(re.sub(rb"^>(>*From )", rb"\1", rest, flags=re.M))
    text = b"\n".join(_bodies(message)).replace(b"\r\n", b"\n")
    if not _DIFF.search(text):
        return None
    subject = " ".join(str(email.header.make_header(
        email.header.decode_header(str(message.get("Subject", "")))
    )).split())  # fmt: skip
    mark = _MARK.match(subject)
    words = mark[1] if mark else ""
    version = re.search(r"\bv(\d+)\b", words, re.I)
    number = re.search(r"\b(\d+)/\d+\b", words)
    return _Mail(
        subject,
        int(version[1]) if version else 1,
        int(number[1]) if number else 1,
        text if text.endswith(b"\n") else text + b"\n",
    )


def _bodies(message: email.message.Message) -> list[bytes]:
    """Return the decoded texts of a mail, attached patches too."""
    return [
        payload
        for part in message.walk()
        if part.get_content_maintype() in ("text", "application")
        and isinstance(payload := part.get_payload(decode=True), bytes)
    ]


def _read(file: Path) -> bytes:
    if file == STDIN:
        if sys.stdin.isatty():
            raise UserError("- reads a patch from standard input, which is a terminal: "
                            "write firsttouch try - <FILE.")  # fmt: skip
        return sys.stdin.buffer.read()
    try:
        return file.read_bytes()
    except OSError as error:
        raise UserError(f"{file} cannot be read ({error.strerror}): check its path.") from None


def _unpack(file: Path, data: bytes) -> bytes:
    for magic, unpack in _PACKED.items():
        if data.startswith(magic):
            try:
                return unpack(data)
            except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
                raise UserError(
                    f"{_shown(file)} cannot be unpacked ({error}): fetch it again."
                ) from None
    return data


def _is_plain(file: Path, data: bytes) -> bool:
    """Tell whether `file` can be read again, and is not packed."""
    return file.is_file() and not data.startswith(tuple(_PACKED))


def _keep(name: str, text: bytes) -> Path:
    """Return a file of the store with `text`."""

    def make(_: Path, product: Path) -> None:
        (product / name).write_bytes(text)

    entry = Entry("patches", {"name": name, "text": digest_bytes(text)}, name)
    return entry.obtain(make, lambda _: None) / name


def _name(file: Path, subject: str) -> str:
    """Return a file's name for what was read from `file`, by a mail's subject if it has one."""
    slug = re.sub(r"[^\w.]+", "-", _MARK.sub("", subject)).strip("-.")[:52]
    if slug or file == STDIN:
        return slug or "standard-input"
    name = re.sub(r"(\.(gz|xz|patch|diff|mbox|mbx|eml|config))+$", "", file.name)
    return name if file.is_file() and name else "pipe"


def _shown(file: Path) -> str:
    return "standard input" if file == STDIN else str(file)


def _what_it_does(file: Path, text: bytes) -> str:
    """Return what a patch without a changed line does; empty if it changes lines."""
    if _CONTENT.search(text):
        return ""
    if renamed := _RENAMED.search(text):
        old, new = (name.decode(errors="replace") for name in renamed.groups())
        return f"{_shown(file)} only renames {old} to {new}"
    if _MODE.search(text):
        return f"{_shown(file)} only changes the modes of files"
    return f"{_shown(file)} changes no line of a file"
