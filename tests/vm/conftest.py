# SPDX-License-Identifier: GPL-2.0
"""A guest of small files, which nothing boots, and a program that replaces QEMU."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from firsttouch.building.host_tools import QEMU
from firsttouch.catalog.machines import load_machine
from firsttouch.vm.guest import Guest, Pmu
from firsttouch.vm.qemu import device_tree, file_digest

_SCRIPT = """#!/usr/bin/python3
import hashlib, json, os, re, sys
given = sys.argv[1:]
if "-kernel" not in given and "-bios" not in given:
    os.execv({real!r}, [{real!r}, *given])
paths = {{}}
for word in given:
    # Among QEMU's options a comma in a path is doubled.
    for path in (word, word.removeprefix("file:"), *re.findall("=(/(?:[^,]|,,)*)", word)):
        file = path.replace(",,", ",")
        if file.startswith("/") and os.path.isfile(file):
            paths[path] = hashlib.sha256(open(file, "rb").read()).hexdigest()
json.dump({{"arguments": given, "paths": paths}}, open({seen!r}, "w"))
answers = json.load(open({answers!r}))
open(given[given.index("-serial") + 1].removeprefix("file:"), "w").write(answers["log"])
(channel,) = [word for word in given if word.startswith("file,id=results,path=")]
open(channel.partition("path=")[2].replace(",,", ","), "w").write(answers["results"])
sys.exit(answers["status"])
"""


@dataclass(frozen=True)
class FakeQemu:
    """A program that runs nothing and records its arguments, and what it is to answer with.

    Queries (QEMU's version, its CPUs, its device tree) go to the real QEMU.
    """

    program: Path
    seen: Path
    answers: Path

    def answer(self, results: str, *, log: str = "", status: int = 0) -> None:
        """Have it write `results` and `log`, and end with `status`."""
        self.answers.write_text(json.dumps({"results": results, "log": log, "status": status}))


@pytest.fixture
def qemu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeQemu]:
    """The program, on PATH before the real one."""
    real = shutil.which(QEMU)
    assert real, f"{QEMU} is missing: `firsttouch doctor` prints a fix"
    folder = tmp_path / "tools"
    folder.mkdir()
    fake = FakeQemu(folder / QEMU, folder / "seen.json", folder / "answers.json")
    fake.program.write_text(
        _SCRIPT.format(real=real, seen=str(fake.seen), answers=str(fake.answers))
    )
    fake.program.chmod(0o755)
    fake.answer("")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    _forget_answers()
    yield fake
    _forget_answers()


def _forget_answers() -> None:
    """Forget what tools on PATH answered: other tools may be there now."""
    file_digest.cache_clear()
    device_tree.cache_clear()


MakeGuest = Callable[[Path], Guest]
DISK = 128 << 20


@pytest.fixture
def make_guest() -> MakeGuest:
    """A guest with a disk and a plugin; the same bytes in any folder."""

    def make(folder: Path) -> Guest:
        folder.mkdir(parents=True)
        for name in ("Image", "init", "ftbench", "libftpmu.so", "disk"):
            (folder / name).write_text(f"{name}\n")
        with (folder / "disk").open("r+b") as disk:
            disk.truncate(DISK)
        return Guest(
            folder / "Image", folder / "init", load_machine("neoverse-n1"),
            ("sysctl.vm.write_intent=0",),
            ("/ftbench populate --by ldadd",), {"/ftbench": folder / "ftbench"},
            disk=folder / "disk", pmu=Pmu(folder / "libftpmu.so", caches=True),
        )  # fmt: skip

    return make
