# SPDX-License-Identifier: GPL-2.0
"""A guest's key depends on all bytes that QEMU is given, and on nothing else."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from firsttouch.catalog.machines import Policy, load_machine
from firsttouch.files import digest, digest_file
from firsttouch.vm import devicetree, initramfs
from firsttouch.vm.guest import Guest
from firsttouch.vm.pmu import Pmu
from firsttouch.vm.qemu import guest_key
from firsttouch.vm.supervision import run_guest
from tests.support import fake_qemu
from tests.vm.conftest import MakeGuest

pytestmark = pytest.mark.long

Change = Callable[[Guest], Guest]


def _machine_with(guest: Guest, policy: Policy) -> Guest:
    (kind,) = guest.machine.cpus
    kind = replace(kind, l1d=replace(kind.l1d, policy=policy))
    return replace(guest, machine=replace(guest.machine, cpus=(kind,)))


def _other_file(guest: Guest, name: str) -> Path:
    """Return another file of the same size as one of the guest's."""
    file = guest.image.with_name(f"other {name}")
    file.write_text(f"{name}\n".upper())
    with file.open("r+b") as other:
        other.truncate(guest.image.with_name(name).stat().st_size)
    return file


def _machine_of(guest: Guest, cpu: str) -> Guest:
    return replace(guest, machine=replace(guest.machine, cpu=cpu))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda guest: replace(guest, image=_other_file(guest, "Image")), id="image"),
        pytest.param(lambda guest: replace(guest, init=_other_file(guest, "init")), id="init"),
        pytest.param(lambda guest: replace(guest, disk=_other_file(guest, "disk")), id="disk"),
        pytest.param(lambda guest: replace(guest, disk=None), id="no disk"),
        pytest.param(
            lambda guest: replace(guest, files={"/ftbench": _other_file(guest, "ftbench")}),
            id="program",
        ),
        pytest.param(
            lambda guest: replace(guest, files={"/bench": guest.files["/ftbench"]}),
            id="program's name",
        ),
        pytest.param(
            lambda guest: replace(guest, pmu=Pmu(_other_file(guest, "libftpmu.so"), True)),
            id="plugin",
        ),
        pytest.param(
            lambda guest: replace(guest, pmu=Pmu(guest.image.with_name("libftpmu.so"), False)),
            id="plugin counts alone",
        ),
        pytest.param(lambda guest: replace(guest, pmu=None), id="no plugin"),
        pytest.param(lambda guest: _with_symbols(guest, "T _text"), id="profile"),
        # Not in the device tree: an option of the plugin only.
        pytest.param(lambda guest: _machine_with(guest, "random"), id="option of the plugin"),
        pytest.param(
            lambda guest: replace(guest, boot=("sysctl.vm.write_intent=1",)), id="boot word"
        ),
        pytest.param(lambda guest: replace(guest, commands=("/ftbench boot",)), id="command"),
        pytest.param(lambda guest: replace(guest, commands=guest.commands * 2), id="commands"),
        pytest.param(lambda guest: _machine_of(guest, "cortex-a72"), id="CPU"),
        pytest.param(lambda guest: replace(guest, machine=load_machine("a64fx")), id="machine"),
        pytest.param(lambda guest: replace(guest, cpus=2), id="CPUs"),
        pytest.param(lambda guest: replace(guest, memory=2 << 30), id="memory"),
        pytest.param(lambda guest: replace(guest, nodes=2), id="nodes"),
        pytest.param(lambda guest: replace(guest, kaslr_seed=1), id="seed of KASLR"),
        pytest.param(lambda guest: replace(guest, board=("its=off",)), id="board"),
        pytest.param(lambda guest: replace(guest, timing="interleaved"), id="timing"),
    ],
)
def test_a_change_of_what_qemu_is_given_changes_the_key(
    make_guest: MakeGuest, tmp_path: Path, change: Change
) -> None:
    guest = make_guest(tmp_path / "guest")
    assert guest_key(guest) == guest_key(guest)
    assert guest_key(change(guest)) != guest_key(guest)


def _with_symbols(guest: Guest, text: str) -> Guest:
    assert guest.pmu
    symbols = guest.image.with_name(f"System.map of {text}")
    symbols.write_text(text)
    return replace(guest, pmu=replace(guest.pmu, symbols=symbols))


def test_a_change_of_the_symbols_changes_the_key(make_guest: MakeGuest, tmp_path: Path) -> None:
    guest = make_guest(tmp_path / "guest")
    first, second, again = (_with_symbols(guest, text) for text in ("a", "b", "a"))
    assert guest_key(first) == guest_key(again) != guest_key(second)


def test_a_change_of_the_device_trees_overlay_changes_the_key(
    make_guest: MakeGuest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guest = make_guest(tmp_path / "guest")
    before = guest_key(guest)
    source = devicetree.overlay_source(guest.machine, 1, None)
    assert "cache-unified;" in source
    changed = source.replace("cache-unified;", "cache-unified; firsttouch;")
    monkeypatch.setattr(devicetree, "overlay_source", lambda *_: changed)
    devicetree.device_tree.cache_clear()
    assert guest_key(guest) != before


def test_another_device_tree_compiler_changes_the_key_if_its_output_differs(
    make_guest: MakeGuest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guest = make_guest(tmp_path / "guest")
    before = guest_key(guest)
    real = shutil.which("dtc")
    for change in ("", "sed -i 's/cache-unified;/cache-unified; firsttouch;/' source"):
        folder = tmp_path / f"tools{len(change)}"
        folder.mkdir()
        (folder / "dtc").write_text(f'#!/bin/sh\n{change}\nexec {real} "$@"\n')
        (folder / "dtc").chmod(0o755)
        fake_qemu.shadow(folder, monkeypatch)
        assert (guest_key(guest) != before) == bool(change)


def test_a_change_of_the_initial_ram_disks_layout_changes_the_key(
    make_guest: MakeGuest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guest = make_guest(tmp_path / "guest")
    before = guest_key(guest)
    console = initramfs.console_archive()
    monkeypatch.setattr(initramfs, "console_archive", lambda: console + bytes(512))
    assert guest_key(guest) != before


def test_another_qemu_changes_the_key(
    make_guest: MakeGuest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guest = make_guest(tmp_path / "guest")
    keys = {guest_key(guest)}
    fake = fake_qemu.install(tmp_path / "tools", monkeypatch)
    keys.add(guest_key(guest))
    fake.program.write_text(f"{fake.program.read_text()}# rebuilt\n")
    fake_qemu.shadow(tmp_path / "tools", monkeypatch)
    keys.add(guest_key(guest))
    assert len(keys) == 3


@pytest.mark.parametrize("folder", ["other", "with a space", "with, a comma", "two,, commas"])
def test_the_same_bytes_in_another_place_have_the_same_key(
    make_guest: MakeGuest, tmp_path: Path, folder: str
) -> None:
    assert guest_key(make_guest(tmp_path / folder)) == guest_key(make_guest(tmp_path / "guest"))


@pytest.mark.parametrize("folder", ["guest", "with, a comma"])
def test_the_key_is_of_what_was_run(
    make_guest: MakeGuest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    """The key is the digest of QEMU's arguments, with the digest of each file for its path."""
    guest = replace(make_guest(tmp_path / folder), cpus=2, nodes=2)
    fake = fake_qemu.install(tmp_path / "tools", monkeypatch)
    # The plugin is not there to write its counts.
    guest = replace(guest, pmu=None)
    fake.answer('\n{"command": 0, "status": 0}\n{"commands": 1}\n')
    log = tmp_path / folder / "log"
    run_guest(guest, log)
    seen = json.loads(fake.seen.read_text())
    names = {path: f"sha256:{value}" for path, value in seen["paths"].items()}
    written = [path for path in names if Path(path).name in ("log", "results")]
    assert len(written) == 2
    for path in written:
        names[path] = {"log": "kernel log", "results": "results"}[Path(path).name]
    arguments = []
    for word in seen["arguments"]:
        paths = [path for path in names if path in word]
        for path in sorted(paths, key=len, reverse=True):
            word = word.replace(path, names[path])
        arguments.append(word)
    qemu = digest_file(fake.program)
    assert guest_key(guest) == digest({"QEMU": qemu, "arguments": arguments})
