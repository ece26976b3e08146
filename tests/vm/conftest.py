# SPDX-License-Identifier: GPL-2.0
"""A guest of small files, which nothing boots."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from firsttouch.catalog.machines import load_machine
from firsttouch.vm.guest import Guest, Pmu
from tests.support import fake_qemu

MakeGuest = Callable[[Path], Guest]
DISK = 128 << 20


@pytest.fixture
def make_guest() -> Iterator[MakeGuest]:
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

    # Tools that any test put on PATH are gone after it.
    fake_qemu.forget_answers()
    yield make
    fake_qemu.forget_answers()
