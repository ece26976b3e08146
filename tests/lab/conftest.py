# SPDX-License-Identifier: GPL-2.0
"""A laboratory whose guests are not booted: requests are recorded, and answered."""

import shutil
import subprocess
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from firsttouch.analysis.dataset import Dataset, make_dataset
from firsttouch.building.programs import BENCH, INIT, ORDERS, PMU
from firsttouch.building.source import KernelSource
from firsttouch.building.store import store_root
from firsttouch.catalog.arms import Kernel, load_arm
from firsttouch.files import write_atomically
from firsttouch.lab import guests, run
from firsttouch.lab.guests import Part, Places
from firsttouch.lab.plan import Plan, Request
from firsttouch.lab.run import RunResults, run_lab
from firsttouch.progress import Reporter
from firsttouch.tables import Json
from firsttouch.vm.guest import Guest
from tests.conftest import Firsttouch
from tests.support.contract import real_contract
from tests.support.results import make_profile, make_region
from tests.support.sources import fake_source

GUARDED_FAULTS = 2048


@dataclass
class FakeLab:
    """The laboratory with fake kernels and guests; `ran` has each guest that was run.

    `guarded` has those of the guard.
    `counts` is what the modelled PMU reports for a region. A guest that has one
    of the words in `failing` among its commands fails.
    """

    parts: Path
    out: Path
    source: KernelSource
    ran: list[Guest] = field(default_factory=list)
    guarded: list[Guest] = field(default_factory=list)
    failing: Mapping[str, BaseException] = field(default_factory=dict)

    def run(self, request: Request) -> RunResults:
        return run_lab(request, real_contract(), Reporter())

    def guest_outcome(
        self,
        guest: Guest,
        log: Path,
        *,
        stop: threading.Event | None = None,
    ) -> dict[str, Json]:
        for word, error in self.failing.items():
            if any(word in command for command in guest.commands):
                raise error
        (self.ran if guest.pmu else self.guarded).append(guest)
        commands: list[Json] = []
        for number, command in enumerate(guest.commands):
            faults = GUARDED_FAULTS + number + 100 * len(guest.boot)
            line: dict[str, Json] = {
                "experiment": command.split()[1],
                "metrics": {"page_faults": faults, "sys_ns": 1000},
                "unavailable": {},
                "regions": ["measured"] if guest.pmu else [],
            }
            commands.append({"lines": [line], "regions": [make_region()] if guest.pmu else []})
        return {"commands": commands, **({"not_modelled": []} if guest.pmu else {})}

    def build_parts(self, source: KernelSource, plan: Plan, reporter: Reporter) -> Places:
        built: dict[Part, str] = {
            Kernel("stock"): "stock", Kernel("changed"): "changed", Kernel("debian"): "debian",
            INIT: "init", PMU: "libftpmu.so",
            **{replace(BENCH, order=n): f"ftbench {n}" for n in range(ORDERS)},
        }  # fmt: skip
        for name in built.values():
            # Other runs may read it: as in the store, nobody sees half of it.
            write_atomically(self.parts / name, name)
        return {part: self.parts / name for part, name in built.items()}


def measured(request: Request) -> Dataset:
    """Return what real guests of a request measure, of which none may fail."""
    outcome = run_lab(request, real_contract(), Reporter())
    assert not outcome.failures
    return make_dataset(outcome.results, outcome.catalog)


def git(tree: Path, *words: str | Path) -> str:
    """Return what git prints in a tree, where commits have an author."""
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    done = subprocess.run(
        ["git", "-C", tree, *identity, *words], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def fake_lab(tmp_path: Path, listing_cache: Path, monkeypatch: pytest.MonkeyPatch) -> FakeLab:
    (tmp_path / "parts").mkdir()
    source = fake_source(tmp_path)
    lab = FakeLab(tmp_path / "parts", tmp_path / "out", source)
    monkeypatch.setattr("firsttouch.lab.run.debian_source", lambda *_: lab.source)
    monkeypatch.setattr("firsttouch.lab.run.build_parts", lab.build_parts)
    monkeypatch.setattr("firsttouch.lab.outcomes.guest_outcome", lab.guest_outcome)
    monkeypatch.setattr(run, "_POLL", 0.01)
    return lab


@pytest.fixture(scope="session")
def guest_programs(reporter: Reporter) -> list[Path]:
    """The entries of the programs that guests get, in the store."""
    built = (BENCH, INIT, PMU)
    return [program.obtain(reporter).parent for program in built]


@pytest.fixture
def ran(
    guest_programs: list[Path],
    fake_lab: FakeLab,
    configured_cache: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> list[Guest]:
    """The guests that ran; kernels are built from a fake tree."""
    for entry in guest_programs:
        shutil.copytree(entry, configured_cache / "programs" / entry.name)
    (tmp_path / "Image").write_text("an image\n")
    monkeypatch.setenv("FAKE_IMAGE", str(tmp_path / "Image"))
    monkeypatch.setattr("firsttouch.lab.run.build_parts", guests.build_parts)
    ran: list[Guest] = []

    def outcome(guest: Guest, log: Path, **more: Any) -> Mapping[str, Json]:
        if guest.pmu is None:
            return fake_lab.guest_outcome(guest, log, **more)
        ran.append(guest)
        synced = 10 * GUARDED_FAULTS * ("isb();" in guest.image.read_text())
        freed = 500 * GUARDED_FAULTS * ("init_on_alloc=0" in guest.boot)
        region = make_region(
            kernel={"instructions": 2500 * GUARDED_FAULTS + synced - freed, "isb": synced}
        )
        if guest.pmu.symbols:
            region["profile"] = make_profile(
                [2000 * GUARDED_FAULTS - freed, 500 * GUARDED_FAULTS + synced]
            )
        line: dict[str, Json] = {
            "metrics": {"page_faults": GUARDED_FAULTS}, "unavailable": {}, "regions": ["measured"],
        }  # fmt: skip
        return {"commands": [{"lines": [line], "regions": [region]}], "not_modelled": []}

    monkeypatch.setattr("firsttouch.lab.outcomes.guest_outcome", outcome)
    return ran


@pytest.fixture
def stock_image(images: Callable[[str, bool], Path]) -> Path:
    """A real kernel, obtained before a test changes the store."""
    return images("6.12", False)


@pytest.fixture
def own_outcomes(
    images: Callable[[str, bool], Path], firsttouch: Firsttouch
) -> Callable[[str], Mapping[str, str]]:
    """Return a function that makes a store which has all but what guests did."""
    for changed in (False, True):
        images("6.12", changed)

    def make(name: str) -> Mapping[str, str]:
        store = firsttouch.directory / name / "firsttouch"
        store.mkdir(parents=True)
        for shelf in store_root().iterdir():
            if shelf.is_dir() and shelf.name != "outcomes":
                (store / shelf.name).symlink_to(shelf)
        return {"XDG_CACHE_HOME": str(store.parent)}

    return make


def arm_of(guest: Guest, *names: str) -> str:
    """Return which of the arms `names` a guest is of."""
    (arm_result,) = [
        name for name in names if guest.machine.boot_words(load_arm(name).boot) == guest.boot
    ]
    return arm_result
