# SPDX-License-Identifier: GPL-2.0
"""A plan in a share: the guests of a run, in batches, and what became of them.

plan.json             what all its orders have in common
orders/BATCH.json     guests to be run; done/BATCH: all of the batch have ended
failures/ab/KEY.1.json, KEY.2.json  of two hosts at most
audits/ab/KEY.json    the outcome of the second time
workers/WORKER        held while the worker lives; news/WORKER what it did, a line each
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from firsttouch.build.claims import is_claimed
from firsttouch.build.outcomes import OUTCOME, outcome_place, read_sealed, sealed
from firsttouch.files import canonical, digest, digest_bytes, write_atomically, write_once
from firsttouch.lab.share import Share, ran_by
from firsttouch.tables import Json, Table, json_object

_PLAN, _ORDERS = "plan", "orders"
# Between the host and the rest in the name of a worker; a host's name has none.
_OF_HOST = "~"


@dataclass(frozen=True)
class Order:
    """A guest to be run, as a share has it: digests in place of files.

    `key` is that of its outcome, `title` its name in messages. With `audit` it
    is to be run twice.
    """

    key: str
    title: str
    audit: bool
    guest: Mapping[str, Json]


@dataclass(frozen=True)
class PostedPlan:
    """A plan in a share: orders in batches, and what became of them."""

    share: Share
    path: Path

    def is_open(self) -> bool:
        """Tell whether its run has not ended."""
        return (self.path / "plan.json").exists()

    def post(self, common: Mapping[str, Json], batches: Mapping[str, Sequence[Order]]) -> None:
        """Write what is missing of the plan; the last file opens it to workers."""
        for name, orders in batches.items():
            place = self.path / _ORDERS / f"{name}.json"
            if not place.exists():
                # As `sealed`, but encoded once: a plan may have 100,000 orders.
                text = canonical({"listed": [vars(order) for order in orders]})
                sha256 = digest_bytes(text.encode())
                write_atomically(place, f'{{"digest": "{sha256}", "{_ORDERS}": {text}}}\n')
        if not self.is_open():
            write_atomically(self.path / "plan.json", sealed(_PLAN, common))

    def common(self) -> Table | None:
        """Return what all orders have in common; None, and remove it, if it is damaged."""
        document = read_sealed(self.path / "plan.json", _PLAN)
        if document is None:
            _remove_damaged(self.path / "plan.json")
        return document.table(_PLAN) if document else None

    def batches(self) -> list[str]:
        """Return the names of all batches, in the order of the plan."""
        return sorted(name.removesuffix(".json") for name in _names(self.path / _ORDERS))

    def open_batches(self) -> list[str]:
        """Return the names of the batches that have orders left."""
        done = set(self.closed_batches())
        return [name for name in self.batches() if name not in done]

    def closed_batches(self) -> list[str]:
        """Return the names of the batches that have none left."""
        return _names(self.path / "done")

    def is_closed(self, batch: str) -> bool:
        """Tell whether a batch has none left."""
        return (self.path / "done" / batch).exists()

    def read(self, batch: str) -> list[Order] | None:
        """Return the orders of a batch; None, and remove it, if it is damaged."""
        place = self.path / _ORDERS / f"{batch}.json"
        document = read_sealed(place, _ORDERS)
        if document is None:
            _remove_damaged(place)
            return None
        orders = document.table(_ORDERS).tables("listed")
        return [
            Order(
                order.take("key", str), order.take("title", str), order.take("audit", bool),
                order.table("guest").rest(),
            )
            for order in orders
        ]  # fmt: skip

    def close(self, batch: str) -> None:
        """Note that all orders of a batch have ended."""
        (self.path / "done").mkdir(exist_ok=True)
        (self.path / "done" / batch).touch()

    def reopen(self, batch: str) -> None:
        """Have workers look at a batch again, because an outcome was lost."""
        (self.path / "done" / batch).unlink(missing_ok=True)

    def audit(self, key: str) -> Path:
        """Return the place of the outcome of a guest's second time."""
        return self.path / "audits" / key[:2] / f"{key}.json"

    def audited(self, key: str) -> Table | None:
        """Return the document with that outcome; None if it is missing or damaged."""
        return read_sealed(self.audit(key), OUTCOME)

    def failures(self, key: str) -> list[Table]:
        """Return how a guest failed: on none, one or two hosts."""
        found = []
        for place in self._failures(key):
            document = read_sealed(place, "failure")
            if document is None:
                break
            found.append(document.table("failure"))
        return found

    def add_failure(self, key: str, failure: Mapping[str, Json]) -> None:
        """Keep how a guest failed on a host."""
        any(write_once(place, sealed("failure", failure)) for place in self._failures(key))

    def disagree(self, key: str, first: Table, host: str, why: str) -> str:
        """Note that two hosts ran a guest and do not agree, and remove its outcome; return that.

        Which of them is right is open.
        """
        hosts = " and ".join(dict.fromkeys([ran_by(first).host, host]))
        sentence = (
            f"two runs of the same guest do not agree, on {hosts} ({why}): run it with "
            "--audit 100% on other hosts to learn which is wrong"
        )
        self.add_failure(key, {"host": "", "error": sentence, "detail": [], "log": ""})
        outcome_place(key, self.share.root).unlink(missing_ok=True)
        return sentence

    def forget_failures(self) -> None:
        """Have all that failed run again."""
        shutil.rmtree(self.path / "failures", ignore_errors=True)

    def _failures(self, key: str) -> list[Path]:
        return [self.path / "failures" / key[:2] / f"{key}.{number}.json" for number in (1, 2)]

    def tell(self, worker: str, news: Mapping[str, Json]) -> None:
        """Add a line to what a worker did. Lines may be lost: they only save looking for files."""
        with (
            contextlib.suppress(FileNotFoundError),
            (self.path / "news" / worker).open("a") as file,
        ):
            file.write(json.dumps(news) + "\n")

    def news(self, read: dict[str, int]) -> Iterator[tuple[str, Table]]:
        """Yield workers and their lines that are not `read` yet: bytes, by worker."""
        for worker in _names(self.path / "news"):
            with (self.path / "news" / worker).open("rb") as file:
                file.seek(read.get(worker, 0))
                whole = file.read().rpartition(b"\n")[0]
            if not whole:
                continue
            read[worker] = read.get(worker, 0) + len(whole) + 1
            for line in whole.decode(errors="replace").split("\n"):
                if (document := json_object(line)) is not None:
                    yield worker, Table(f"news of {worker}", document)

    def enter(self, worker: str) -> Path:
        """Return the claim that `worker` is to hold while it lives."""
        (self.path / "news").mkdir(exist_ok=True)
        return self.path / "workers" / worker

    def has_entered(self, worker: str) -> bool:
        """Tell whether `worker` holds its claim, unless somebody has posted the plan again."""
        return (self.path / "workers" / worker).exists()

    def living(self) -> list[str]:
        """Return the workers that live."""
        workers = self.path / "workers"
        return [name for name in _names(workers) if is_claimed(workers / name, self.share.lease)]

    def remove(self) -> None:
        """End the plan: workers leave it after the guest that they run."""
        gone = self.path.with_name(f".{uuid.uuid4().hex}")
        with contextlib.suppress(FileNotFoundError):
            self.path.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)


def open_plans(share: Share) -> list[PostedPlan]:
    """Return the plans of a share whose runs have not ended."""
    names = sorted(_names(share.plans))
    return [plan for name in names if (plan := posted_plan(share, name)).is_open()]


def posted_plan(share: Share, name: str) -> PostedPlan:
    """Return the plan called `name`, which may not be there."""
    return PostedPlan(share, share.plans / name)


def in_batches(orders: Sequence[Order]) -> dict[str, Sequence[Order]]:
    """Return orders by the name of their batch: as many batches as a batch has orders, about.

    So neither a batch nor the directory of all batches gets long. The same
    orders get the same names.
    """
    size = max(1, math.isqrt(len(orders)))
    found = {}
    for begin in range(0, len(orders), size):
        some = orders[begin : begin + size]
        found[f"{begin:07}-{digest([order.key for order in some])[:8]}"] = some
    return found


def worker_name(host: str) -> str:
    """Return a new name for a worker of `host`."""
    return f"{host}{_OF_HOST}{uuid.uuid4().hex[:12]}"


def host_of(worker: str) -> str:
    """Return the host of a worker."""
    return worker.partition(_OF_HOST)[0]


def _remove_damaged(place: Path) -> None:
    # The run that posted it writes it again.
    place.unlink(missing_ok=True)


def _names(folder: Path) -> list[str]:
    """Return the names in a folder, which may be missing, without those of partial files."""
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as found:
        return [entry.name for entry in found if not entry.name.startswith(".")]
    return []
