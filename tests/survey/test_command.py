# SPDX-License-Identifier: GPL-2.0
"""`firsttouch survey` as a user runs it: here, in guests, and with requests it cannot carry out."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from firsttouch.cli.main import main
from firsttouch.errors import UserError
from firsttouch.places import REPOSITORY
from firsttouch.progress import Reporter
from firsttouch.survey.document import read_survey
from firsttouch.survey.findings import examine
from firsttouch.survey.keeping import claimed
from firsttouch.survey.on_host import survey_host
from firsttouch.survey.rounds import TaskRunner
from firsttouch.survey.tasks import Task
from tests.conftest import Firsttouch
from tests.support.kernels import releases_with_stock
from tests.support.warm import Finished

PAGE = os.sysconf("SC_PAGESIZE")
# Enough for each first touch once on a host that is busy with other tests.
SECONDS = 20


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        (["--seconds", "0"], ["give 5 to 3600"]),
        (["--seconds", "-1"], ["give 5 to 3600"]),
        (["--seconds", "many"], ["invalid int value: 'many'"]),
        (["--guest", "stok"], ["unknown arm 'stok'", "did you mean 'stock'"]),
        (["--guest", "stock", "--machine", "neovers"], ["unknown machine 'neovers'"]),
        (["--guest", "stock", "--release", "5.4"], ["unknown release '5.4'"]),
        (["--guest", "stock", "--seconds", "9"], ["--seconds and --guest exclude each other"]),
        (["--release", "6.12"], ["--release needs --guest"]),
        (["--machine", "neoverse-n1"], ["--machine needs --guest"]),
        (["--out", "/proc/firsttouch"], ["cannot write to /proc/firsttouch", "--out"]),
        (["--outt", "x"], ["unrecognized arguments"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_bad_request_is_refused_in_one_sentence(
    firsttouch: Firsttouch, arguments: list[str], fragments: list[str]
) -> None:
    done = firsttouch("survey", *arguments)
    assert done.returncode == 2, done.stderr
    assert not done.stdout
    (sentence,) = done.stderr.strip().splitlines()
    assert sentence.startswith("firsttouch: ")
    for fragment in fragments:
        assert fragment in sentence


def test_another_architecture_is_refused(
    monkeypatch: pytest.MonkeyPatch, reporter: Reporter
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(UserError, match=r"riscv64.*--guest stock"):
        survey_host(5, reporter)


@pytest.fixture(scope="module")
def surveyed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Finished, Path]:
    """A survey of the host that runs the tests, with little time."""
    directory = tmp_path_factory.mktemp("survey")
    done = Firsttouch(directory)("survey", "--seconds", str(SECONDS), "--out", "here")
    return done, directory / "here/survey.json"


@pytest.mark.long
def test_a_survey_of_the_host_ends_in_its_sentences(
    surveyed: tuple[Finished, Path],
) -> None:
    done, _ = surveyed
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 100
    assert done.stdout.startswith(("This host is affected", "This host is not affected"))
    what_follows = done.stdout.partition("What follows")[2].partition("\nHost\n")[0]
    for about in ("double fault", "cost", "colours", "today", "JVM"):
        assert re.search(rf"^{about}", what_follows, re.M), about
    # Progress is for people and goes elsewhere.
    assert "Surveying" in done.stderr and "Surveying" not in done.stdout


@pytest.mark.long
def test_a_survey_keeps_all_its_samples(surveyed: tuple[Finished, Path]) -> None:
    _, file = surveyed
    survey = json.loads(file.read_text())
    assert survey["schema"] == 1
    assert survey["where"] == {"kind": "machine"}
    assert survey["facts"]["page_size"] == PAGE
    assert {sample["task"] for sample in survey["samples"]} <= set(survey["tasks"])
    store = [s for s in survey["samples"] if s["task"] == "touch base store"]
    assert store and [sample["round"] for sample in store] == list(range(len(store)))
    for sample in store:
        size = sample["line"]["params"]["size"]
        assert sample["line"]["metrics"]["page_faults"] == size // PAGE
    touches = {t["kind"]: t for t in survey["findings"]["touches"] if t["page"] == "base"}
    assert touches["store"]["faults"] == touches["madvise"]["faults"] == 1
    assert touches["load-store"]["faults"] == 2
    assert survey["sentences"][0]["about"] == "verdict"
    assert survey["seconds"] == SECONDS and survey["interrupted"] is False


@pytest.mark.long
def test_what_is_unavailable_has_a_reason(surveyed: tuple[Finished, Path]) -> None:
    _, file = surveyed
    survey = json.loads(file.read_text())
    assert len(survey["findings"]["counters"]) == 10
    assert len(survey["findings"]["touches"]) >= 9
    for counter in survey["findings"]["counters"]:
        assert counter["figures"] or counter["unavailable"]
    for touch in survey["findings"]["touches"]:
        assert touch["elapsed"] or touch["unavailable"]


@pytest.mark.long
def test_operations_of_mm_have_a_time_each(firsttouch: Firsttouch) -> None:
    done = firsttouch("survey", "--operations", "--seconds", "30")
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 100
    file = firsttouch.directory / "out/survey.json"
    operations = {each.name: each for each in examine(read_survey(file)).operations}
    assert {name.split()[0] for name in operations} == {
        "advise", "fork", "heap", "lock", "page-cache", "program-start", "protect", "remap",
        "socket", "switch", "unmap", "userfault",
    }  # fmt: skip
    for operation in operations.values():
        assert (operation.elapsed is None) == bool(operation.unavailable)
    # The heap grows by 64 KiB a time, whose pages are stored to.
    assert operations["heap up-stores 4k"].faults == 65536 // PAGE
    untouched, touched = operations["unmap at-once untouched"], operations["unmap at-once 4k"]
    assert untouched.elapsed and touched.elapsed
    assert 20 * untouched.elapsed.median < touched.elapsed.median
    # A table, or lines where it is too wide.
    assert re.search(r"^switch call\s+(faults )?0\.00", done.stdout, re.M), done.stdout
    compared = firsttouch("compare", "out", "out")
    assert re.search(r"unmap pieces 4k +processor, ns each", compared.stdout), compared.stdout


def test_a_survey_that_is_interrupted_at_once_keeps_nothing_and_says_so(
    firsttouch: Firsttouch,
) -> None:
    process = firsttouch.start("survey", "--seconds", "3600")
    assert process.stderr is not None
    while "Surveying" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, rest = process.communicate(timeout=30)
    assert process.returncode == 130
    (sentence,) = (line for line in rest.splitlines() if line.startswith("firsttouch: "))
    assert "interrupted" in sentence and "nothing was kept" in sentence
    assert not out
    assert not list((firsttouch.directory / "out").iterdir())


class _Interrupted(TaskRunner):
    """A runner that the user interrupts after the first round of the first touches."""

    def rounds(self, tasks: Sequence[Task], until: float, rounds: int | None = None) -> None:
        if rounds is None:
            super().rounds(tasks[:2], until, 0)
            raise KeyboardInterrupt


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The working directory of a survey that runs in this process, and is interrupted."""
    monkeypatch.setattr("firsttouch.survey.on_host.TaskRunner", _Interrupted)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_an_interrupted_survey_keeps_what_was_measured(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["survey", "--seconds", "3600"]) == 130
    printed = capsys.readouterr()
    first = " ".join(printed.out.split("\n\n")[0].split())
    assert "not known: the survey was interrupted before it" in first
    assert "The survey was interrupted" in printed.out and "give a larger" not in printed.out
    assert "interrupted; what was measured so far is printed and kept" in printed.err
    survey = read_survey(here / "out/survey.json")
    assert survey.interrupted and survey.seconds == 3600
    assert {sample.task for sample in survey.samples} == {
        "touch base store",
        "touch base load-store",
    }


def test_a_survey_that_cannot_be_kept_is_printed(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(path: Path, data: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("firsttouch.survey.document.write_atomically", full)
    assert main(["survey"]) == 2
    printed = capsys.readouterr()
    assert "What follows" in printed.out and "First touch" in printed.out
    assert "samples are in" not in printed.out
    (sentence,) = (line for line in printed.err.splitlines() if line.startswith("firsttouch: "))
    assert "cannot write out/survey.json (No space left on device)" in sentence
    assert "--out" in sentence


def test_a_survey_is_kept_though_nobody_reads_it(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_arguments: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("firsttouch.cli.survey.print_survey", broken)
    main(["survey"])
    assert read_survey(here / "out/survey.json").samples


def test_a_second_survey_into_the_same_directory_is_refused(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with claimed(here / "out"):
        assert main(["survey"]) == 2
        error = capsys.readouterr().err
        assert error.startswith("firsttouch: another survey is running and writes to out")
        assert "--out" in error and len(error.splitlines()) == 1
        assert main(["survey", "--out", "elsewhere"]) == 130
    # The claim ends with its survey and leaves nothing behind.
    assert not list((here / "out").iterdir())
    assert main(["survey"]) == 130
    assert [file.name for file in (here / "out").iterdir()] == ["survey.json"]


def test_a_survey_that_was_killed_keeps_no_other_out(here: Path) -> None:
    script = (
        "import os; from pathlib import Path; from firsttouch.survey.keeping import claimed\n"
        "with claimed(Path('out')): os._exit(1)"
    )
    subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)}, check=False,
    )  # fmt: skip
    assert list((here / "out").glob(".survey.lock"))
    assert main(["survey"]) == 130


def test_a_file_system_without_locks_holds_a_survey(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock = fcntl.flock

    def refused(descriptor: int, operation: int) -> None:
        # The store is elsewhere.
        if "/out/" in str(Path(f"/proc/self/fd/{descriptor}").readlink()):
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
        flock(descriptor, operation)

    monkeypatch.setattr("fcntl.flock", refused)
    assert main(["survey"]) == 130
    assert (here / "out/survey.json").exists()


@pytest.mark.kernel
@pytest.mark.parametrize("release", releases_with_stock())
@pytest.mark.parametrize(("arm", "faults"), [("stock", 2), ("on", 1)])
def test_a_guest_finds_the_double_fault_or_its_absence(
    firsttouch: Firsttouch, release: str, arm: str, faults: int
) -> None:
    done = firsttouch("survey", "--guest", arm, "--release", release, "--out", "here")
    assert done.returncode == 0, done.stderr
    survey = json.loads((firsttouch.directory / f"here/survey-{arm}.json").read_text())
    assert survey["where"]["kind"] == "guest"
    assert survey["facts"]["architecture"] == "arm64"
    touches = {t["kind"]: t for t in survey["findings"]["touches"] if t["page"] == "base"}
    for atomic in ("ldadd", "swp", "cas", "casp"):
        assert touches[atomic]["faults"] == faults, atomic
    # Whether a store follows, no load-exclusive tells.
    assert touches["ldxr"]["faults"] == 2
    assert touches["store"]["faults"] == 1
    assert survey["findings"]["zero_pages"] == (1 if arm == "stock" else 4)
    said = {s["about"]: s["text"] for s in reversed(survey["sentences"])}
    if arm == "stock":
        assert said["double fault"].startswith("Atomics fault twice here")
        assert said["cost"].startswith("The double fault costs")
    else:
        assert "by ldxr takes 2.00 page faults" in said["double fault"]
        assert "by ldadd, swp, cas and casp one" in said["double fault"]
    assert "What follows" in done.stdout
