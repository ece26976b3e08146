# SPDX-License-Identifier: GPL-2.0
"""Recordings in results: what is found in them, and the programs of `doubles` in a guest."""

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from firsttouch.analysis.measurement import measure
from firsttouch.building.programs import HOST_RECORDER, INIT, RECORDER, RootDisk
from firsttouch.building.store import keep_outcome
from firsttouch.catalog.arms import load_arm
from firsttouch.catalog.contract import RECORDED
from firsttouch.catalog.experiments import load_catalog, load_experiment
from firsttouch.catalog.machines import load_machine
from firsttouch.errors import GuestError
from firsttouch.lab import outcomes
from firsttouch.lab.cells import Cell
from firsttouch.lab.guests import FTBENCH, Job, Part, make_jobs
from firsttouch.lab.outcomes import results_of, with_traces
from firsttouch.lab.plan import Plan, Request, make_plan
from firsttouch.lab.results import TRACE, Result, read_results
from firsttouch.lab.run import collect
from firsttouch.progress import Reporter
from firsttouch.tables import Fields, Json
from firsttouch.trace.sites import Trace, parse_trace
from firsttouch.vm.guest import Guest
from firsttouch.vm.qemu import guest_key
from tests.conftest import Firsttouch
from tests.lab.conftest import FakeLab
from tests.support.contract import real_contract
from tests.support.results import make_result
from tests.support.sources import fake_source


def _recorded(folder: Path, *command: str) -> str:
    """Return what the recorder writes of a command on this host, in hexadecimal."""
    file = folder / "data"
    subprocess.run([HOST_RECORDER.obtain(Reporter()), "-o", file, "--", *command], check=True)
    return file.read_bytes().hex()


def _traced(*lines: Mapping[str, Json]) -> Sequence[Mapping[str, Json]]:
    outcome = Fields("a guest", {"commands": [{"lines": list(lines), "regions": []}]})
    (command,) = Fields("a guest", with_traces(outcome, Path("/"))).tables("commands")
    return command.objects("lines")


def test_the_result_of_a_recording_has_its_figures(tmp_path: Path) -> None:
    lines: list[Mapping[str, Json]] = [
        {"recording": _recorded(tmp_path, "/bin/true")},
        {"metrics": {}, "unavailable": {}},
    ]
    traced = _traced(*lines)
    assert "recording" not in traced[0]
    assert traced[1] == lines[1]
    result = replace(make_result({}), lines=tuple(traced))
    trace = _trace_of(result)
    assert trace.faults > 10
    metrics = measure(result, load_experiment("doubles")).metrics
    assert metrics.keys() == {*RECORDED}
    assert metrics["faults"] == trace.faults
    kinds = ("atomic", "exclusive", "apart")
    assert metrics["doubles"] == sum(metrics[f"doubles_{kind}"] for kind in kinds)


@pytest.mark.long
def test_a_program_that_fails_fails_its_cell(tmp_path: Path) -> None:
    line = {"recording": _recorded(tmp_path, "/bin/false")}
    with pytest.raises(GuestError, match="ended with status 256"):
        _traced(line)


def _trace_of(result: Result) -> Trace:
    return parse_trace(Fields("a result", result.lines[0]).table(TRACE))


def _recorded_job(tmp_path: Path, program: str = "true") -> Job:
    """Return the job of a guest that records a program."""
    file = tmp_path / "file"
    file.write_text("a file")
    guest = Guest(
        file, file, load_machine("neoverse-n1"), (), (f"/ftbench {program}",), {FTBENCH: file}
    )
    source = fake_source(tmp_path)
    cell = Cell("6.12", "stock", "neoverse-n1", "doubles", {"program": program})
    experiment = load_experiment("doubles")
    return Job(guest, guest_key(guest), (cell,), source, load_arm("stock"), experiment)


def _keep_recording(job: Job, tmp_path: Path, command: str) -> None:
    lines: list[Json] = [{"recording": _recorded(tmp_path, command)}]
    keep_outcome(job.key, {"commands": [{"lines": lines, "regions": []}], "not_modelled": []})


def _trace(job: Job) -> Trace:
    results = results_of(job)
    assert isinstance(results, list)
    return _trace_of(results[0])


@pytest.fixture(autouse=True)
def _host_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The recorded programs are those of this host."""
    monkeypatch.setattr(outcomes, "unpack", lambda *_: Path("/"))


@pytest.mark.long
def test_a_changed_finder_finds_again_and_runs_no_guest(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = _recorded_job(tmp_path)
    assert results_of(job) is None
    _keep_recording(job, tmp_path, "/bin/true")
    trace = _trace(job)
    assert trace.faults > 10
    with monkeypatch.context() as changed:
        changed.setattr(outcomes, "trace_digest", lambda: "0" * 64)
        assert _trace(job) == trace
    # What was found is not looked for again.
    monkeypatch.setattr(outcomes, "with_traces", lambda *_: pytest.fail("read again"))
    assert _trace(job) == trace


@pytest.mark.parametrize("recording", ["no", "00"])
def test_what_is_no_recording_fails_its_cell(recording: str) -> None:
    with pytest.raises(GuestError, match="recorded no faults"):
        _traced({"recording": recording})


@pytest.mark.long
def test_a_recording_that_cannot_be_used_fails_its_cell_and_no_other(
    own_cache: Path, tmp_path: Path
) -> None:
    bad, good = _recorded_job(tmp_path, "bad"), _recorded_job(tmp_path, "good")
    lines: list[Json] = [{"recording": "00"}]
    keep_outcome(bad.key, {"commands": [{"lines": lines, "regions": []}], "not_modelled": []})
    _keep_recording(good, tmp_path, "/bin/true")
    cells = (*bad.cells, *good.cells)
    catalog = load_catalog(("doubles",), ("neoverse-n1",), ("stock",))
    plan = Plan(cells, (bad.cells, good.cells), catalog)
    # The same guest would record the same: it does not run again.
    collected = collect(plan, [(job, results_of(job)) for job in (bad, good)], {})
    assert [result.cell for result in collected.results] == list(good.cells)
    ((cell, error),) = collected.failures
    assert (cell,) == bad.cells and "recorded no faults" in str(error)


@pytest.mark.kernel
def test_perl_reads_the_pages_of_its_hash_before_it_writes_them(
    firsttouch: Firsttouch, tmp_path: Path
) -> None:
    done = firsttouch(
        "lab", "--experiment", "doubles", "--arm", "stock", "--set", "program=perl-hash",
        "--out", str(tmp_path),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (result,) = read_results(tmp_path)
    trace = _trace_of(result)
    assert trace.machine == "aarch64"
    top = trace.sites[0]
    assert top.read.function == "Perl_hv_common"
    # The table of 131,072 buckets, 8 bytes each, as it grows from half of its size.
    assert top.doubles > 131072 * 8 // 4096 // 2
    assert top.memory == "anonymous"


def test_a_cell_depends_on_its_own_script_alone(tmp_path: Path, fake_lab: FakeLab) -> None:
    request = Request(
        experiments=("doubles",), arms=("stock",), settings={"program": ("bc",)}, out=tmp_path
    )
    experiment = load_experiment("doubles")
    assert experiment.root is not None
    plan = make_plan(request, "6.12", real_contract())
    parts = fake_lab.build_parts(fake_lab.source, plan, Reporter())
    places: dict[Part, Path] = {
        **parts,
        RootDisk(experiment.root): parts[INIT],
        RECORDER: parts[INIT],
    }

    def key(**scripts: str) -> str:
        other = {**plan.catalog.experiments, "doubles": replace(experiment, scripts=scripts)}
        catalog = replace(plan.catalog, experiments=other)
        (job,) = make_jobs(replace(plan, catalog=catalog), fake_lab.source, places)
        return job.key

    assert key(bc="one", xz="one") == key(bc="one", xz="two") != key(bc="two", xz="one")
