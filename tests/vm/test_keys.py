# SPDX-License-Identifier: GPL-2.0
"""A guest's key depends on all bytes that QEMU is given, and on nothing else."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firsttouch.catalog.machines import load_machine
from firsttouch.errors import UserError
from firsttouch.files import digest, digest_file
from firsttouch.vm.guest import Guest, Pmu
from firsttouch.vm.qemu import device_tree, guest_key
from firsttouch.vm.supervision import run_guest
from tests.vm.conftest import FakeQemu, MakeGuest

pytestmark = pytest.mark.long


def _other(guest: Guest, name: str) -> Path:
    """Return another file of the same size as one of the guest's."""
    file = guest.image.with_name(f"other {name}")
    file.write_text(f"{name}\n".upper())
    with file.open("r+b") as other:
        other.truncate(guest.image.with_name(name).stat().st_size)
    return file


def _plugin(guest: Guest, **changes: Any) -> dict[str, Any]:
    return {"pmu": replace(guest.pmu or Pmu(Path(), True), **changes)}


def _random_l1d(guest: Guest) -> dict[str, Any]:
    """An option of the plugin, which is not in the device tree."""
    (kind,) = guest.machine.cpus
    kind = replace(kind, l1d=replace(kind.l1d, policy="random"))
    return {"machine": replace(guest.machine, cpus=(kind,))}


# What changes in a guest.
_CHANGES: dict[str, Callable[[Guest], dict[str, Any]]] = {
    "image": lambda guest: {"image": _other(guest, "Image")},
    "init": lambda guest: {"init": _other(guest, "init")},
    "disk": lambda guest: {"disk": _other(guest, "disk")},
    "no disk": lambda _: {"disk": None},
    "program": lambda guest: {"files": {"/ftbench": _other(guest, "ftbench")}},
    "program's name": lambda guest: {"files": {"/bench": guest.files["/ftbench"]}},
    "plugin": lambda guest: _plugin(guest, plugin=_other(guest, "libftpmu.so")),
    "plugin counts alone": lambda guest: _plugin(guest, caches=False),
    "no plugin": lambda _: {"pmu": None},
    "profile": lambda guest: _plugin(guest, symbols=_other(guest, "Image")),
    "profile by other symbols": lambda guest: _plugin(guest, symbols=_other(guest, "init")),
    "option of the plugin": _random_l1d,
    "boot word": lambda _: {"boot": ("sysctl.vm.write_intent=1",)},
    "command": lambda _: {"commands": ("/ftbench boot",)},
    "commands": lambda guest: {"commands": guest.commands * 2},
    "CPU": lambda guest: {"machine": replace(guest.machine, cpu="cortex-a72")},
    "machine": lambda _: {"machine": load_machine("a64fx")},
    "CPUs": lambda _: {"cpus": 2},
    "memory": lambda _: {"memory": 2 << 30},
    "nodes": lambda _: {"nodes": 2},
    "seed of KASLR": lambda _: {"kaslr_seed": 1},
    "board": lambda _: {"board": ("its=off",)},
    "timing": lambda _: {"timing": "interleaved"},
}


def test_each_change_of_what_qemu_is_given_gives_another_key(
    make_guest: MakeGuest, tmp_path: Path
) -> None:
    guest = make_guest(tmp_path / "guest")
    keys = {name: guest_key(replace(guest, **change(guest))) for name, change in _CHANGES.items()}
    keys["nothing"] = guest_key(guest)
    assert len(set(keys.values())) == len(keys), keys


@pytest.mark.parametrize("folder", ["other", "with a space", "with, a comma", "two,, commas"])
def test_the_same_bytes_in_another_place_have_the_same_key(
    make_guest: MakeGuest, tmp_path: Path, folder: str
) -> None:
    assert guest_key(make_guest(tmp_path / folder)) == guest_key(make_guest(tmp_path / "guest"))


@pytest.mark.parametrize("folder", ["guest", "with, a comma"])
def test_the_key_is_of_what_was_run(
    make_guest: MakeGuest, qemu: FakeQemu, tmp_path: Path, folder: str
) -> None:
    """The key is the digest of QEMU's arguments, with the digest of each file for its path."""
    # The plugin is not there to write its counts.
    guest = replace(make_guest(tmp_path / folder), cpus=2, nodes=2, pmu=None)
    qemu.answer('\n{"command": 0, "status": 0}\n{"commands": 1}\n')
    run_guest(guest, tmp_path / folder / "log")
    seen = json.loads(qemu.seen.read_text())
    names = {path: f"sha256:{value}" for path, value in seen["paths"].items()}
    written = {"log": "kernel log", "results": "results"}
    found = {path: written[Path(path).name] for path in names if Path(path).name in written}
    assert len(found) == 2
    names |= found
    arguments = []
    for word in seen["arguments"]:
        for path in sorted(names, key=len, reverse=True):
            word = word.replace(path, names[path])
        arguments.append(word)
    whole = {"QEMU": digest_file(qemu.program), "arguments": arguments}
    assert guest_key(guest) == digest(whole)


def test_a_cpu_that_qemu_has_not_is_named_before_its_device_tree_is_read() -> None:
    machine = replace(load_machine("neoverse-n1"), cpu="neoverse-v9")
    with pytest.raises(UserError, match="cpu is 'neoverse-v9', which QEMU does not have"):
        device_tree(("qemu-system-aarch64", "-M", "virt", "-cpu", machine.cpu), machine, 1, None, 0)
