# SPDX-License-Identifier: GPL-2.0
"""What processes that run the same plan tell each other: a folder of the store, while they run.

host.json             QEMU, dtc and code of the host that began
running/HOST~ID       claim of a process that runs guests
following/HOST~ID     claim of a process that waits for these
failures/KEY/HOST.json  how a guest failed on a host
audits/KEY.json       the digest of what a guest gave the second time, and where

The processes are on any hosts that see the store. Its claims divide the guests
among them; its outcomes are what they find. A claim beside the folder keeps it
there while a process enters.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import firsttouch
from firsttouch.building.claims import LEASE, claimed, is_claimed
from firsttouch.building.host_tools import DTC, qemu_digest
from firsttouch.building.outcomes import (
    By,
    drop_outcome,
    read_sealed,
    run_by,
    sealed,
    stored_document,
)
from firsttouch.building.store import PLANS, store_root
from firsttouch.errors import HostError
from firsttouch.files import digest, digest_files, write_atomically
from firsttouch.processes import output
from firsttouch.tables import Json, Table
from firsttouch.typed import read

_RUNNING, _FOLLOWING = "running", "following"
# Between the host and the rest in the name of a process; a host's name has none.
_OF_HOST = "~"
# The room whose code decides what QEMU gets.
_DECIDES = "vm"
# Failures of so many hosts end a guest.
_HOSTS = 2


@dataclass(frozen=True)
class Failure:
    """How a guest failed: its error, lines about it, and the end of its kernel's log.

    `host` is empty if two hosts ran it and do not agree.
    """

    host: str
    error: str
    detail: tuple[str, ...] = ()
    log: str = ""


@dataclass(frozen=True)
class Ended:
    """How a guest ended: who ran it, and the second time if it was audited; or its failure."""

    by: By | None = None
    again: By | None = None
    failure: Failure | None = None


@dataclass(frozen=True)
class SharedPlan:
    """The folder of the plan called `name`; `audits` are the keys of guests that run twice."""

    name: str
    audits: frozenset[str]
    lease: float = LEASE

    @property
    def path(self) -> Path:
        """The folder, which may not be there."""
        return store_root() / PLANS / self.name

    def check_joinable(self) -> None:
        """Raise HostError if no run of this plan has begun, or this host would run other guests."""
        if self.path.is_dir():
            return
        here = Table("this host", _host())
        for place in sorted(self.path.parent.glob("[!.]*/host.json"), key=os.path.getmtime):
            document = read_sealed(place, "host")
            if document and (other := _difference(here, document.table("host"))):
                raise HostError(other)
        raise HostError(
            f"no run of this plan is under way in {store_root()}: --join takes the options of a "
            "run that has begun with the same store, without --out and --on."
        )

    @contextlib.contextmanager
    def running(self, host: str) -> Iterator[None]:
        """Tell the others that this process runs guests on `host`, while the context lasts."""
        with self._present(_RUNNING, host):
            yield

    @contextlib.contextmanager
    def following(self) -> Iterator[None]:
        """Tell the others that this process waits for them, while the context lasts."""
        with self._present(_FOLLOWING, socket.gethostname()):
            yield

    @contextlib.contextmanager
    def _present(self, role: str, host: str) -> Iterator[None]:
        """Have a claim in the folder: the first process makes it, the last removes it."""
        presence = self.path / role / f"{host}{_OF_HOST}{uuid.uuid4().hex[:12]}"
        with contextlib.ExitStack() as claims:
            with self._alone():
                # What an interrupted run left would end guests of this one.
                self._remove_unused()
                if not self.path.is_dir():
                    write_atomically(self.path / "host.json", sealed("host", _host()))
                claims.enter_context(claimed(presence, lease=self.lease))
            yield
        with self._alone():
            self._remove_unused()

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep others from entering the folder, and from removing it, while the context lasts."""
        with claimed(self.path.with_name(f"{self.name}.claim"), lease=self.lease):
            yield

    def _remove_unused(self) -> None:
        """Remove the folder, unless processes use it."""
        if self._living(_RUNNING) or self._living(_FOLLOWING):
            return
        # Renamed first, so that a killed process leaves no half of it.
        gone = self.path.with_name(f".{self.name}.{uuid.uuid4().hex}.pruned")
        with contextlib.suppress(FileNotFoundError):
            self.path.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)

    def hosts(self) -> set[str]:
        """Return the hosts on which processes run guests of the plan."""
        return {name.partition(_OF_HOST)[0] for name in self._living(_RUNNING)}

    def _living(self, role: str) -> list[str]:
        folder = self.path / role
        return [name for name in _names(folder) if is_claimed(folder / name, self.lease)]

    def how_ended(self, key: str, *, others_may_come: bool = False) -> Ended | None:
        """Return how a guest ended; None if it is to run, also a second time.

        Two hosts try a guest that fails. One is enough if no other runs guests
        now, unless `others_may_come`.
        """
        if failures := self.failures(key):
            failed_on = {failure.host for failure in failures}
            enough = "" in failed_on or len(failures) >= _HOSTS
            # Asked last: it looks at the claim of each process.
            if enough or (not others_may_come and self.hosts() <= failed_on):
                return Ended(failure=min(failures, key=lambda failure: bool(failure.host)))
        first = stored_document(key)
        if first is None:
            return None
        if key not in self.audits:
            return Ended(run_by(first))
        again = self.audit(key)
        agree = again and first.take("digest", str) == again.take("audit", str)
        return Ended(run_by(first), run_by(again)) if again and agree else None

    def audit(self, key: str) -> Table | None:
        """Return what `keep_audit` kept; None if the guest did not run a second time."""
        return read_sealed(self.path / "audits" / f"{key}.json", "audit")

    def keep_audit(self, key: str, sha256: str, by: By) -> None:
        """Keep the digest of what a guest gave the second time."""
        place = self.path / "audits" / f"{key}.json"
        write_atomically(place, sealed("audit", sha256, by=vars(by)))

    def failures(self, key: str) -> list[Failure]:
        """Return how a guest failed, by host."""
        folder = self.path / "failures" / key
        documents = [read_sealed(folder / name, "failure") for name in sorted(_names(folder))]
        return [read(document.table("failure"), Failure) for document in documents if document]

    def add_failure(self, key: str, failure: Failure) -> None:
        """Keep how a guest failed on a host."""
        place = self.path / "failures" / key / f"{failure.host or _OF_HOST}.json"
        write_atomically(place, sealed("failure", asdict(failure)))

    def disagree(self, key: str, first: Table, host: str, why: str) -> None:
        """Note that two hosts ran a guest and do not agree, and drop its outcome.

        Which of them is right is open.
        """
        hosts = " and ".join(dict.fromkeys([run_by(first).host, host]))
        sentence = (
            f"two runs of the same guest do not agree, on {hosts} ({why}): run it with "
            "--audit 100% on other hosts to learn which is wrong"
        )
        self.add_failure(key, Failure("", sentence))
        drop_outcome(key)


def shared_plan(keys: Iterable[str], audits: Iterable[str]) -> SharedPlan:
    """Return the plan of the guests with these keys, of which the `audits` are to run twice."""
    audited = frozenset(audits)
    return SharedPlan(digest([sorted(set(keys)), sorted(audited)])[:16], audited)


def _host() -> dict[str, Json]:
    """Return what hosts must have in common to make the same guests of the same request."""
    folder = Path(firsttouch.__file__).parent
    return {
        "name": socket.gethostname(),
        "QEMU": qemu_digest(),
        "device tree compiler": output([DTC, "--version"]).strip(),
        "code of firsttouch": digest_files(folder, (folder / _DECIDES).glob("*.py")),
    }


def _difference(here: Table, other: Table) -> str:
    """Return why this host makes other guests than another; empty if nothing tells."""
    for what in ("QEMU", "device tree compiler", "code of firsttouch"):
        mine, theirs = here.take(what, str), other.take(what, str)
        if mine != theirs:
            return (
                f"{here.take('name', str)} has another {what} than {other.take('name', str)}, "
                f"where the run began ({mine[:40]} and {theirs[:40]}), and so makes other guests: "
                "install the same on both."
            )
    return ""


def _names(folder: Path) -> list[str]:
    """Return the names in a folder, which may be missing, without those of partial files."""
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        return [entry.name for entry in entries if not entry.name.startswith(".")]
    return []
