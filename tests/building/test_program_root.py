# SPDX-License-Identifier: GPL-2.0
"""The root directory of a user's program: what it lacks is said before a guest boots."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from firsttouch.building.host_tools import cross_compile
from firsttouch.building.program_root import Member, RootArchive, check_program, members_of
from firsttouch.catalog.experiments import UserProgram
from firsttouch.errors import UserError
from firsttouch.progress import Reporter

_LINK, _FILE = 0o120777, 0o100755


def _compiled(folder: Path, compiler: str) -> Path:
    (folder / "a.c").write_text("int main(void) { return 0; }\n")
    subprocess.run([compiler, "-o", folder / "a", folder / "a.c"], check=True)
    return folder / "a"


def _root(program: Path, *more: str) -> dict[str, Member]:
    return {
        "lib": (_LINK, b"usr/lib"),
        "bin": (_LINK, b"/usr/bin"),
        "usr/bin/real": (_FILE, program),
        "usr/bin/a": (_LINK, b"../bin/real"),
        "usr/share/a": (_FILE, program.with_name("no program")),
        **dict.fromkeys(more, (_FILE, program)),
    }


_LOADER, _LIBC = "usr/lib/ld-linux-aarch64.so.1", "usr/lib/aarch64-linux-gnu/libc.so.6"


@pytest.mark.parametrize(
    ("word", "files", "lacks"),
    [
        ("a", (_LOADER, _LIBC), ""),
        ("/bin/a", (_LOADER, _LIBC), ""),
        ("a", (_LIBC,), "a needs /lib/ld-linux-aarch64.so.1"),
        ("a", (_LOADER,), "a needs libc.so.6"),
        ("b", (), "b is not in the root directory"),
    ],
)
def test_what_a_root_lacks(tmp_path: Path, word: str, files: tuple[str, ...], lacks: str) -> None:
    members = _root(_compiled(tmp_path, f"{cross_compile()}gcc"), *files)
    if not lacks:
        check_program(UserProgram((word,)), members)
        return
    with pytest.raises(UserError, match=lacks):
        check_program(UserProgram((word,)), members)


@pytest.mark.parametrize(
    ("script", "lacks"),
    [("#!/bin/python3 -s\n", "/bin/python3"), ("exit 1\n", "/bin/sh"), ("#!/bin/b\n", "")],
)
def test_a_script_needs_its_interpreter(tmp_path: Path, script: str, lacks: str) -> None:
    (tmp_path / "a").write_text(script)
    members = _root(tmp_path / "a", "usr/bin/b")
    if not lacks:
        check_program(UserProgram(("a",)), members)
        return
    with pytest.raises(UserError, match=f"a needs {lacks}, which"):
        check_program(UserProgram(("a",)), members)


def test_a_program_of_this_host(tmp_path: Path) -> None:
    copied = _compiled(tmp_path, "gcc")
    program = UserProgram(("./a",), copies=(copied,))
    with pytest.raises(UserError, match="a is not for arm64"):
        RootArchive(program).obtain(Reporter())
    with pytest.raises(UserError, match="write /a for that one"):
        RootArchive(replace(program, root=tmp_path)).obtain(Reporter())


def test_a_root_that_cannot_be_used_is_refused(tmp_path: Path, own_cache: Path) -> None:
    file = tmp_path / "root/blob"
    (tmp_path / "root/below").mkdir(parents=True)
    (tmp_path / "below").mkdir()
    file.write_bytes(b"#!/blob\n" + bytes(4 << 20))
    (tmp_path / "below/blob").touch()
    program = UserProgram(("/blob",), root=tmp_path / "root", memory=128 << 20)
    for changed, why in (
        ({"root": file}, "tar cannot read --root .*/root/blob: give a folder or a tar"),
        ({"copies": (file, tmp_path / "below/blob")}, "below/blob is not the only blob for /work"),
        ({}, "root directory of blob is too large: give --memory 133M at least"),
    ):
        with pytest.raises(UserError, match=why):
            RootArchive(replace(program, **changed)).obtain(Reporter())
    # A folder that its user cannot read, which root can.
    with (
        mock.patch.object(Path, "rglob", return_value=[tmp_path / "root/below"]),
        mock.patch("os.scandir", side_effect=PermissionError),
        pytest.raises(PermissionError),
    ):
        members_of(tmp_path / "root")


def test_an_archive_holds_links_modes_and_copies(tmp_path: Path, own_cache: Path) -> None:
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    (root / "etc/script").write_text("#!/etc/script\n")
    (root / "etc/script").chmod(0o700)
    (root / "etc/link").symlink_to("script")
    (root / "etc/\udcff").touch()
    (tmp_path / "data").write_bytes(b"abc")
    program = UserProgram(("/etc/link",), root=root, copies=(tmp_path / "data",))
    archive = RootArchive(program).obtain(Reporter())
    assert archive.is_relative_to(own_cache)
    assert archive.stat().st_size % 512 == 0
    contents = archive.read_bytes()
    for name, mode in (("etc/script", 0o100755), ("etc/link", 0o120777), ("work/data", 0o100755)):
        header = contents[: contents.index(f"root/{name}\0".encode())][-110:]
        assert (header[:6], int(header[14:22], 16)) == (b"070701", mode)
