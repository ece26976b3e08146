# SPDX-License-Identifier: GPL-2.0
"""Files that are whole or not there, and digests that depend on contents alone."""

import errno
import os
from pathlib import Path

import pytest

from firsttouch.files import digest, digest_files, write_atomically


def test_a_file_is_as_it_was_until_the_new_one_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    write_atomically(file, "old")
    seen = []
    fsync = os.fsync

    def look(number: int) -> None:
        seen.append(file.read_text())
        fsync(number)

    monkeypatch.setattr(os, "fsync", look)
    write_atomically(file, "new" * 5000)
    assert seen == ["old"]
    assert file.read_text() == "new" * 5000
    assert list(tmp_path.iterdir()) == [file]


def test_a_write_that_fails_leaves_the_old_file_alone_and_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    write_atomically(file, "old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError) as error:
        write_atomically(file, "new")
    assert error.value.filename == str(file)
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_digests_are_of_names_and_contents_and_not_of_the_place(tmp_path: Path) -> None:
    digests = []
    for folder in ("one", "other one"):
        (tmp_path / folder / "sub").mkdir(parents=True)
        files = [tmp_path / folder / "sub/b", tmp_path / folder / "a"]
        for file in files:
            file.write_text(file.name)
        digests.append(digest_files(tmp_path / folder, files))
    assert digests[0] == digests[1]
    files[0].write_text("B")
    assert digest_files(tmp_path / folder, files) != digests[0]
    assert digest({"a": (1, 2), "b": None}) == digest({"b": None, "a": [1, 2]})
