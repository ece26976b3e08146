# SPDX-License-Identifier: GPL-2.0
"""What users give as patches: files, mails, mailboxes, pipes, packed or not."""

import base64
import gzip
import io
import os
import quopri
import sys
from pathlib import Path

import pytest

from firsttouch.building.patches import STDIN, names_in, read_fragment, read_patches
from firsttouch.errors import UserError
from tests.conftest import TRIED

_PATCH = TRIED / "0001-mm-synchronize-each-first-touch.patch"
_FRAGMENT = TRIED / "memcg-off.config"
_FROM = "From mboxrd@z Thu Jan  1 00:00:00 1970\n"


def _diff(name: str = "mm/a.c") -> str:
    return f"--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-old é\n+new é\n"


def _mail(subject: str, text: str, *more: str) -> str:
    head = ["From: A Developer <a@example.org>", f"Subject: {subject}", *more]
    return _FROM + "\n".join(head) + f"\n\nWhy.\n---\n{text}-- \n2.39.5\n\n"


pytestmark = pytest.mark.usefixtures("own_cache")

# Writes what it is asked for as the mail's subject.
_B4 = """#!/bin/sh
[ "$1 $2" = "am -o" ] || exit 1
printf 'From a Thu Jan  1 00:00:00 1970\\nSubject: %%s\\n\\n%s' "$4" > "$3/v1.mbx"
"""


@pytest.mark.parametrize(
    "given", ["1.2-a@x", "<1.2-a@x>", "https://lore.kernel.org/linux-mm/1.2-a@x/#t"]
)
def test_b4_fetches_a_message_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    b4 = tmp_path / "b4"
    b4.write_text(_B4 % _diff().replace("\n", "\\n"))
    b4.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    (patch,) = read_patches([Path(given)])
    assert patch.name == "1.2-a@x.patch"
    assert patch.read_text().endswith(f"Subject: 1.2-a@x\n\n{_diff()}")
    b4.write_text("#!/bin/sh\nexit 1\n")
    assert read_patches([Path(given)]) == (patch,)
    with pytest.raises(UserError, match=r"3@x cannot be fetched \(b4 failed with status 1: "):
        read_patches([Path("3@x")])


def test_a_thread_is_fetched_from_an_archive_without_b4(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr("firsttouch.building.patches._ARCHIVE", tmp_path.as_uri())
    (tmp_path / "1@x").mkdir()
    series = [_mail(f"[PATCH {n}/2] mm: do {n}", _diff(), f"Message-ID: <{n}@x>") for n in (2, 1)]
    (tmp_path / "1@x/t.mbox.gz").write_bytes(gzip.compress("".join(series).encode()))
    patches = read_patches([Path("1@x")])
    assert [patch.name for patch in patches] == ["0001-mm-do-1.patch", "0002-mm-do-2.patch"]
    with pytest.raises(UserError, match=r"^2@x cannot be fetched \(.*\): check the network"):
        read_patches([Path("2@x")])


def test_an_edit_after_a_file_was_read_changes_nothing(tmp_path: Path) -> None:
    patch, fragment = tmp_path / "x.diff", tmp_path / "y.config"
    patch.write_text(_diff())
    fragment.write_text("CONFIG_A=y\n")
    read = (*read_patches([_PATCH, patch]), read_fragment(fragment))
    patch.write_text(_diff("mm/b.c"))
    fragment.write_text("CONFIG_B=y\n")
    assert [file.name for file in read] == [_PATCH.name, "x.patch", "y.config"]
    assert [file.read_text() for file in read] == [_PATCH.read_text(), _diff(), "CONFIG_A=y\n"]


def test_a_removed_line_that_looks_like_a_header_names_no_file(tmp_path: Path) -> None:
    patch = tmp_path / "x.patch"
    patch.write_text(
        "diff --git a/mm/a.sql b/mm/a.sql\n--- a/mm/a.sql\n+++ b/mm/a.sql\n@@ -1,2 +1,2 @@\n"
        " a\n--- docs/old text\n+++ docs/new text\n"
    )
    assert names_in(patch) == ("mm/a.sql",)


def test_a_patch_that_git_cannot_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.patch").write_text(_diff().replace("@@ -1 +1 @@", "@@ -1,9 +1 @@"))
    with pytest.raises(UserError, match=r"git cannot read .*/x.patch \(.*corrupt patch at line"):
        read_patches([tmp_path / "x.patch"])


def test_a_mail_that_came_by_two_lists_gives_its_patch_once(tmp_path: Path) -> None:
    first, second = (
        _mail(f"[PATCH {number}/2] mm", _diff(f"mm/{number}.c"), f"Message-ID: <{number}@x>")
        for number in (1, 2)
    )
    (tmp_path / "box").write_text(first + second + first.replace("example.org", "example.com"))
    assert len(read_patches([tmp_path / "box"])) == 2


def test_a_directory_is_a_series_in_order_without_its_cover_letter(tmp_path: Path) -> None:
    for name in ("0002-b.patch", "0001-a.patch"):
        (tmp_path / name).write_text(_PATCH.read_text())
    (tmp_path / "0003-c.patch.gz").write_bytes(gzip.compress(_PATCH.read_bytes()))
    (tmp_path / "0000-cover-letter.patch").write_text("Subject: two changes\n")
    (tmp_path / "notes.txt").write_text("no patch\n")
    patches = read_patches([tmp_path])
    assert [file.name for file in patches[:2]] == ["0001-a.patch", "0002-b.patch"]
    assert patches[2].read_bytes() in _PATCH.read_bytes()
    assert b"isb();" in patches[2].read_bytes()


@pytest.mark.parametrize("pack", [gzip.compress, bytes])
def test_standard_input_may_be_packed(pack: type[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    data = io.BytesIO(pack(_diff().encode()))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(data))
    (patch,) = read_patches([STDIN])
    assert patch.name == "standard-input.patch"
    assert patch.read_text() == _diff()


def test_a_mailbox_gives_the_newest_version_of_its_series_in_order(tmp_path: Path) -> None:
    box = "".join([
        _mail("[PATCH v2 2/2] mm: second", _diff("mm/b.c")),
        _mail("[PATCH 1/2] mm: old", _diff("mm/old.c")),
        _mail("[PATCH v2 0/2] mm: cover", "nothing\n"),
        _mail("Re: [PATCH v2 1/2] mm: first", "> quoted\n" + _diff("mm/suggested.c")),
        _mail("[PATCH v2 1/2] mm: first", _diff("mm/a.c")),
    ])  # fmt: skip
    (tmp_path / "t.mbox.gz").write_bytes(gzip.compress(box.encode()))
    first, second = read_patches([tmp_path / "t.mbox.gz"])
    assert (first.name, second.name) == ("0001-mm-first.patch", "0002-mm-second.patch")
    assert _diff("mm/a.c") in first.read_text()
    assert _diff("mm/b.c") in second.read_text()
    assert read_patches([tmp_path / "t.mbox.gz"]) == (first, second)


def test_a_diff_in_an_answer_is_no_part_of_a_patch(tmp_path: Path) -> None:
    box = _mail("[PATCH] mm: do", _diff()) + _mail("Re: [PATCH] mm: do", _diff("mm/other.c"))
    (tmp_path / "t.mbox").write_text(box)
    (patch,) = read_patches([tmp_path / "t.mbox"])
    assert names_in(patch) == ("mm/a.c",)


@pytest.mark.parametrize("encoding", ["quoted-printable", "base64"])
def test_a_mail_is_decoded(tmp_path: Path, encoding: str) -> None:
    encode = quopri.encodestring if encoding == "quoted-printable" else base64.encodebytes
    head = (
        "From: x@example.org\nSubject: [PATCH] =?utf-8?q?a_=C3=A9?=\n"
        f"Content-Transfer-Encoding: {encoding}\n\n"
    )
    text = f"Why.\r\n---\r\n{_diff()}"
    (tmp_path / "m.eml").write_bytes(head.encode() + encode(text.encode()))
    (patch,) = read_patches([tmp_path / "m.eml"])
    assert _diff() in patch.read_text() and "\r" not in patch.read_text()
    assert patch.name == "0001-a-é.patch"


def test_a_mail_may_have_damaged_headers(tmp_path: Path) -> None:
    mail = _mail("=?x-unknown?q?abc?= =?utf-8?b?!!!?=", _diff(), "Message-ID: <a@[>")
    (tmp_path / "box").write_text(mail)
    (patch,) = read_patches([tmp_path / "box"])
    assert _diff() in patch.read_text()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (Path("nowhere.patch"), "nowhere.patch cannot be read"),
        (_FRAGMENT, "memcg-off.config is no patch"),
        (Path("/proc/self/fdinfo"), "has no \\*.patch"),
    ],
)
def test_what_is_no_patch_is_refused(given: Path, said: str) -> None:
    with pytest.raises(UserError, match=said):
        read_patches([given])
