# SPDX-License-Identifier: GPL-2.0
"""Guests as orders: what a run writes into a share, and how a worker of any host runs it."""

from __future__ import annotations

import functools
import socket
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import get_args

import firsttouch
from firsttouch.build.host_tools import DTC, qemu_digest, qemu_version
from firsttouch.build.packages import pack, unpack_packed
from firsttouch.build.store import Entry
from firsttouch.catalog.machines import Cache, CpuKind, Machine
from firsttouch.errors import HostError
from firsttouch.files import digest, digest_files
from firsttouch.lab.guests import Job
from firsttouch.lab.outcomes import guest_outcome
from firsttouch.lab.posted import Order, PostedPlan
from firsttouch.lab.share import Share, copy_part
from firsttouch.lab.traces import finder_digest
from firsttouch.processes import output
from firsttouch.progress import Reporter
from firsttouch.tables import Json, Table
from firsttouch.vm.guest import Guest, Port, Timing
from firsttouch.vm.pmu import Pmu
from firsttouch.vm.qemu import file_digest, guest_key

# Runs the guest of an order, with a file for its kernel's log, until the event
# is set; returns its outcome. Raises GuestError, StoppedError, HostError if this
# host cannot run it, and LostPartError.
Runner = Callable[[Order, Path, threading.Event], Mapping[str, Json]]
# Returns the runner of a plan's orders; None while the plan is damaged.
MakeRunner = Callable[[PostedPlan], Runner | None]

_TIMINGS: dict[str, Timing] = {name: name for name in get_args(Timing)}
_PORTS: dict[str, Port] = {name: name for name in get_args(Port)}
# The rooms whose code decides what QEMU gets, and what is found in a recording.
_DECIDE = ("vm", "finder")


class LostPartError(Exception):
    """The share lost a file that a guest needs; the run that posted it copies it again."""


@dataclass(frozen=True)
class Posting:
    """What a run writes into a share: orders, the files that they need, what all have in common."""

    orders: tuple[Order, ...]
    parts: Mapping[str, Path]
    common: Mapping[str, Json]


def make_posting(jobs: Iterable[Job], audits: Collection[str], reporter: Reporter) -> Posting:
    """Return the orders for `jobs`; those whose key is in `audits` run twice."""
    parts: dict[str, Path] = {}
    machines: dict[str, Machine] = {}
    packed = functools.cache(functools.partial(pack, reporter=reporter))
    orders = []

    def plain(value: object) -> Json:
        """Return a field of a guest as JSON, with the digests of files."""
        match value:
            case Path():
                parts[file_digest(value)] = value
                return file_digest(value)
            case bytes():
                return value.hex()
            case Machine():
                machines[value.name] = value
                return value.name
            case Pmu():
                return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
            case Mapping():
                return {str(name): plain(one) for name, one in value.items()}
            case tuple():
                return [plain(one) for one in value]
            case None | bool() | int() | str():
                return value
        raise TypeError(type(value))

    for job in jobs:
        guest = {field.name: plain(getattr(job.guest, field.name)) for field in fields(job.guest)}
        guest["root"] = plain(packed(job.root())) if job.root else None
        orders.append(Order(job.key, job.cells[0].title, job.key in audits, guest))
    described: dict[str, Json] = {name: _described(machine) for name, machine in machines.items()}
    return Posting(tuple(orders), parts, {"machines": described, **_host()})


def _described(machine: Machine) -> dict[str, Json]:
    return {**asdict(machine), "name": machine.name}


def _host() -> dict[str, Json]:
    """Return what a host must have in common with the run's to get the same keys."""
    folder = Path(firsttouch.__file__).parent
    code = [file for room in _DECIDE for file in (folder / room).glob("*.py")]
    return {
        "qemu": qemu_digest(),
        "qemu_version": qemu_version(),
        "dtc": output([DTC, "--version"]).strip(),
        "firsttouch": digest_files(folder, code),
    }


def make_guest_runner(reporter: Reporter) -> MakeRunner:
    """Return what makes the runner of a plan on this host.

    That raises HostError if this host has another QEMU than the run that posted
    the plan, because it would run other guests.
    """

    def make(plan: PostedPlan) -> Runner | None:
        common = plan.common()
        if common is None:
            return None
        own = Table("this host", _host())
        host = socket.gethostname()
        if common.take("qemu", str) != own.take("qemu", str):
            raise HostError(
                f"{host} has another QEMU than the run ({own.take('qemu_version', str)}, "
                f"sha256 {own.take('qemu', str)[:12]}; the run has "
                f"{common.take('qemu_version', str)}, sha256 {common.take('qemu', str)[:12]}): "
                "install the same package on both."
            )
        table = common.table("machines")
        machines = {name: _read_machine(table.table(name)) for name in table.values_of(dict)}
        obtain = functools.cache(functools.partial(obtain_part, plan.share, reporter))

        def run(order: Order, log: Path, stop: threading.Event) -> Mapping[str, Json]:
            told = Table(f"the order {order.key}", order.guest)
            guest = _read_guest(told, machines, obtain)
            packed = told.optional("root", str)
            key = (
                guest_key(guest) if packed is None else digest([guest_key(guest), finder_digest()])
            )
            if key != order.key:
                raise HostError(_difference(order, common, own))
            root = None
            if packed is not None:
                root = functools.partial(unpack_packed, obtain(packed), packed, reporter)
            return guest_outcome(guest, log, stop=stop, root=root)

        return run

    return make


def _difference(order: Order, common: Table, own: Table) -> str:
    host = socket.gethostname()
    for name, title in (("firsttouch", "code of firsttouch"), ("dtc", "device tree compiler")):
        if common.take(name, str) != own.take(name, str):
            return (
                f"{host} makes another guest of {order.title}, because it has another {title} than "
                f"the run ({own.take(name, str)[:40]} and {common.take(name, str)[:40]}): "
                "install the same on both."
            )
    return (
        f"{host} makes another guest of {order.title} from the same files: compare what "
        "`firsttouch lab --show-qemu` writes here and on the host of the run."
    )


def obtain_part(share: Share, reporter: Reporter, sha256: str) -> Path:
    """Return the file of this digest in the own store; copy it from the share if it is not there.

    Raises LostPartError if the share lost or damaged it.
    """

    def make(_workplace: Path, kept: Path) -> None:
        place = share.part(sha256)
        if not place.exists():
            raise LostPartError(sha256)
        if not copy_part(place, kept / "part", sha256):
            place.unlink(missing_ok=True)
            raise LostPartError(sha256)

    entry = Entry("parts", {"sha256": sha256}, f"part {sha256[:12]} of a share")
    return entry.obtain(make, reporter.say) / "part"


def _read_guest(
    table: Table, machines: Mapping[str, Machine], part: Callable[[str], Path]
) -> Guest:
    def optional(key: str) -> Path | None:
        sha256 = table.optional(key, str)
        return None if sha256 is None else part(sha256)

    pmu = table.table("pmu") if table.optional("pmu", dict) else None
    symbols = pmu.optional("symbols", str) if pmu else None
    return Guest(
        image=part(table.take("image", str)),
        init=part(table.take("init", str)),
        machine=machines[table.take("machine", str)],
        boot=table.strings("boot"),
        commands=table.strings("commands"),
        files={name: part(file) for name, file in table.table("files").values_of(str).items()},
        disk=optional("disk"),
        mounted=table.take("mounted", bool),
        cpus=table.take("cpus", int),
        timing=_TIMINGS[table.take("timing", str)],
        memory=table.take("memory", int),
        nodes=table.take("nodes", int),
        cpu=table.optional("cpu", str),
        board=table.strings("board"),
        pmu=Pmu(
            part(pmu.take("plugin", str)),
            pmu.take("caches", bool),
            part(symbols) if symbols else None,
            pmu.take("pages", bool),
        ) if pmu else None,
        port=_PORTS[table.take("port", str)],
        firmware=optional("firmware"),
        tables=bytes.fromhex(table.take("tables", str)),
        kaslr_seed=table.take("kaslr_seed", int),
    )  # fmt: skip


def _read_machine(table: Table) -> Machine:
    return Machine(
        table.take("name", str), table.take("title", str), table.take("cpu", str),
        table.strings("board"), table.optional("midr", int),
        tuple(
            CpuKind(
                kind.take("count", int), _read_cache(kind.table("l1d")),
                _read_cache(kind.table("l1i")), _optional_cache(kind, "l2"),
            )
            for kind in table.tables("cpus")
        ),
        _optional_cache(table, "l3"),
    )  # fmt: skip


def _optional_cache(table: Table, key: str) -> Cache | None:
    return _read_cache(table.table(key)) if table.optional(key, dict) else None


def _read_cache(table: Table) -> Cache:
    return Cache(
        table.take("size", int), table.take("ways", int), table.take("line", int),
        table.take("policy", str), table.take("source", str),
    )  # fmt: skip
