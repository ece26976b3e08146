# SPDX-License-Identifier: GPL-2.0
"""`firsttouch lab --dry-run` and `--list`: they say what would be done and do nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from firsttouch.building.kernel import KernelImage
from firsttouch.building.programs import BENCH, INIT, PMU
from firsttouch.building.source import KernelSource
from firsttouch.building.store import keep_outcome
from firsttouch.catalog.arms import Kernel
from firsttouch.cli.lab import forecast, print_plan
from firsttouch.errors import HostError
from firsttouch.lab.guests import Part, make_jobs
from firsttouch.lab.plan import Request, make_plan
from firsttouch.progress import Reporter
from tests.conftest import Firsttouch
from tests.support.contract import real_contract
from tests.support.sources import fake_source

pytestmark = pytest.mark.long

_REQUEST = Request(
    experiments=("populate",), settings={"by": ("ldadd",), "page": ("4k",)}, arms=("stock", "on")
)


def _kept_image(source: KernelSource, *, changed: bool) -> Path:
    """Put a fake kernel into the store."""

    def make(_: Path, product: Path) -> None:
        (product / "Image").write_text(f"changed {changed}")

    kernel = Kernel("changed" if changed else "stock")
    return KernelImage(source, kernel).entry().obtain(make, print)


def test_before_anything_is_there_all_is_to_be_built_and_unknown(
    firsttouch: Firsttouch, own_cache: Path
) -> None:
    done = firsttouch("lab", "--experiment", "populate", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "48 cells in 48 guests: builds 2 kernels, runs 48 guests, about " in done.stdout
    assert done.stdout.endswith("Nothing was built or run.\n")
    made = {path.name for path in own_cache.iterdir()}
    # Only ftbench for this host, which says what it can measure.
    assert not made & {"images", "outcomes", "trees", "packages", "disks"}
    assert not (firsttouch.directory / "out").exists()


def test_each_release_has_its_line(firsttouch: Firsttouch, own_cache: Path) -> None:
    words = ("--release", "7.3", "--release", "6.12", "--dry-run")
    for command in (["lab", *words], ["try", "--boot", "x=1", *words]):
        done = firsttouch(*command, "--experiment", "boot")
        assert done.returncode == 0, done.stderr
        planned = [line.split()[0] for line in done.stdout.splitlines() if " cells in " in line]
        assert planned == ["7.3:", "6.12:"]


def test_what_the_store_has_is_told_from_what_is_to_be_run(
    configured_cache: Path, reporter: Reporter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, source = make_plan(_REQUEST, "6.12", real_contract()), fake_source(tmp_path)
    assert forecast(plan, None) == forecast(plan, source) == (2, 2)
    stock = _kept_image(source, changed=False)
    places: dict[Part, Path] = {part: part.obtain(reporter) for part in (BENCH, INIT, PMU)}
    assert forecast(plan, source) == (1, 2)
    changed = _kept_image(source, changed=True)
    places |= {Kernel("stock"): stock, Kernel("changed"): changed}
    keep_outcome(make_jobs(plan, source, places)[0].key, {"commands": []})
    assert forecast(plan, source) == (0, 1)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a store"))
    with pytest.raises(HostError, match="kernels cannot be built below"):
        print_plan(_REQUEST, real_contract(), reporter)


def test_the_list_has_experiments_machines_and_arms_with_their_titles(
    firsttouch: Firsttouch,
) -> None:
    done = firsttouch("lab", "--list")
    assert (done.returncode, done.stderr) == (0, "")
    listed = [" ".join(line.split()) for line in done.stdout.splitlines()]
    for line in (
        "populate First touch of anonymous memory",
        "neoverse-n1 Arm Neoverse N1",
        "on colour zero pages, and write-intent faults of atomics",
    ):
        assert line in listed
