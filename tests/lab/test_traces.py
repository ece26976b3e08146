# SPDX-License-Identifier: GPL-2.0
"""Recordings in results: what is found in them, and the programs of `doubles` in a guest."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from firsttouch.analysis.measurement import Measurement, measure
from firsttouch.build.disks import Disk, RootDisk
from firsttouch.build.programs import build_recorder
from firsttouch.catalog.contract import RECORDED, WATCHED
from firsttouch.catalog.experiment_files import load_experiment
from firsttouch.errors import GuestError
from firsttouch.finder.document import trace_document
from firsttouch.finder.sites import Trace
from firsttouch.finder.vain import Vain
from firsttouch.lab.guests import make_jobs, recorder_files
from firsttouch.lab.plan import Request, make_plan
from firsttouch.lab.results import read_results
from firsttouch.lab.traces import found_in, trace_of
from firsttouch.progress import Reporter
from firsttouch.tables import Json, json_object
from tests.conftest import Firsttouch
from tests.lab.conftest import FakeLab
from tests.support.contract import real_contract
from tests.support.results import make_result


def _recorded(folder: Path, *command: str) -> str:
    """Return what the recorder writes of a command on this host, in hexadecimal."""
    file = folder / "data"
    subprocess.run([build_recorder(Reporter()), "-o", file, "--", *command], check=True)
    return file.read_bytes().hex()


def test_the_result_of_a_recording_has_its_figures(tmp_path: Path) -> None:
    lines: list[Mapping[str, Json]] = [
        {"recording": _recorded(tmp_path, "/bin/true")},
        {"metrics": {}, "unavailable": {}},
    ]
    found = found_in(lines, Path("/"), tmp_path / "log", iter(()))
    assert "recording" not in found[0]
    assert found[1] == lines[1]
    result = replace(make_result({}), lines=tuple(found))
    trace = trace_of(result)
    assert trace is not None
    assert trace.faults > 10
    measured = measure(result, load_experiment("doubles"))
    metrics = measured.metrics
    # A host's kernel upgrades nothing, and no PMU watches.
    assert metrics.keys() == RECORDED.keys() - {"upgraded"}
    assert measured.missing.keys() >= {"upgraded"} | WATCHED.keys()
    assert metrics["faults"] == trace.faults
    kinds = ("atomic", "exclusive", "load_store", "apart")
    assert metrics["doubles"] == sum(metrics[f"doubles_{kind}"] for kind in kinds)


@pytest.mark.parametrize(
    ("line", "words"),
    [({"recording": "no"}, "recorded no faults"), ({"recording": "00"}, "recorded no faults")],
)
def test_what_is_no_recording_fails_its_cell(
    tmp_path: Path, line: dict[str, str], words: str
) -> None:
    (tmp_path / "log").write_text("the end of the log")
    with pytest.raises(GuestError, match=words):
        found_in([line], Path("/"), tmp_path / "log", iter(()))


def test_a_program_that_fails_fails_its_cell(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("the end of the log")
    line = {"recording": _recorded(tmp_path, "/bin/false")}
    with pytest.raises(GuestError, match="ended with status 256"):
        found_in([line], Path("/"), tmp_path / "log", iter(()))


@pytest.mark.kernel
def test_perl_reads_the_pages_of_its_hash_before_it_writes_them(
    firsttouch: Firsttouch, tmp_path: Path
) -> None:
    done = firsttouch(
        "lab", "--experiment", "doubles", "--arm", "stock", "--set", "program=perl-hash",
        "--out", str(tmp_path),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (result,) = read_results(tmp_path).results
    trace = trace_of(result)
    assert trace is not None
    assert trace.machine == "aarch64"
    top = trace.sites[0]
    assert top.read.function == "Perl_hv_common"
    # The table of 131,072 buckets, 8 bytes each, as it grows from half of its size.
    assert top.doubles > 131072 * 8 // 4096 // 2
    assert top.removable["learn"] > 0.9 * top.doubles


def test_pages_in_vain_are_absent_where_the_kernel_or_the_pmu_does_not_tell() -> None:
    made = Trace(("perl",), "aarch64", "7.3", 4096, True, 0, 2.0, 1000, 0, 1000, 0, 7, 0, 0, 5, ())

    def figures(upgraded: int | None, vain: Vain | None = None) -> Measurement:
        told = json_object(trace_document(replace(made, upgraded=upgraded, vain=vain), ()))
        lines: tuple[Mapping[str, Json], ...] = ({"trace": told}, {"metrics": {}})
        return measure(replace(make_result({}), lines=lines), load_experiment("doubles"))

    stock, unwatched = figures(None), figures(7)
    assert stock.metrics.keys().isdisjoint({"upgraded", *WATCHED})
    assert "upgrades no read fault" in stock.missing["pages_in_vain"]
    assert unwatched.metrics["upgraded"] == 7
    assert "did not watch" in unwatched.missing["pages_in_vain"]
    watched = figures(7, Vain(3, 2, 1))
    assert [watched.metrics[name] for name in WATCHED] == [3, 2]


def test_a_cell_depends_on_its_own_script_alone(tmp_path: Path, fake_lab: FakeLab) -> None:
    request = Request(
        experiments=("doubles",), arms=("stock",), settings={"program": ("bc",)}, out=tmp_path
    )
    experiment = load_experiment("doubles")
    assert experiment.root is not None
    plan = make_plan(request, "6.12", real_contract())
    parts = fake_lab.build_parts(fake_lab.source, plan, tmp_path, Reporter())
    disks: dict[Disk, Path] = {RootDisk(experiment.root): parts.ftbench}

    def key(**scripts: str) -> str:
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        files = {name: folder / name for name in ("recorder", *scripts)}
        for name, file in files.items():
            file.write_text(scripts.get(name, name))
        recorder = recorder_files(files.pop("recorder"), files)
        (job,) = make_jobs(plan, replace(parts, disks=disks, recorders={"doubles": recorder}))
        return job.key

    assert key(bc="one", xz="one") == key(bc="one", xz="two") != key(bc="two", xz="one")
