# SPDX-License-Identifier: GPL-2.0
"""Fuzzes what reads files and options, each for a minute: nothing ends but by a sentence."""

import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

from firsttouch.building.programs import HOST_RECORDER
from firsttouch.files import REPOSITORY
from firsttouch.progress import Reporter
from tests.trace.conftest import FOLDER as TRACED

pytestmark = [
    pytest.mark.regress,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="Atheris has no other wheels"),
]

HERE = Path(__file__).parent
_SECONDS = 60
# Of one input; the machine may be busy.
_LONGEST = 20
_WORDS_OF_FTBENCH = (
    "populate\n--by\nldadd\n--page=4k\n--size\n64M",
    "programs\n--program\nperl-hash\n--root\n/",
    "touch-order\n--order\nup\n--repeat\n3",
    "set-conflict\n--ways=8\n--counters\nnone",
)
_OPTIONS_OF_PMU = (
    "out=x\nl1i=32K:4:64:lru\nl1d=32K:4:64:lru\nl2=256K:8:64:plru",
    "out=x\nl1d=8K:4:64:random\nl3@0-1=64K:16:64:lru\nseed=7\nhistogram=l1d+l3",
    "out=x\nzva=64\ncheck=on\nprofile=System.map",
)


def _run(command: list[str | Path], folder: Path) -> None:
    """Fuzz from the seeds in `folder`; fail with what ended the run."""
    (folder / "found").mkdir()
    options: list[str | Path] = [
        f"-max_total_time={_SECONDS}", f"-timeout={_LONGEST}", "-rss_limit_mb=4096",
        "-print_final_stats=1", f"-artifact_prefix={folder}/", folder / "found", folder / "seeds",
    ]  # fmt: skip
    done = subprocess.run(
        [*command, *options], capture_output=True, text=True, errors="replace", check=False,
        cwd=REPOSITORY, timeout=_SECONDS * 10,
    )  # fmt: skip
    runs = re.search(r"stat::number_of_executed_units:\s*(\d+)", done.stderr)
    print(runs.group() if runs else "no statistics")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
    # The start alone runs the seeds.
    assert runs and int(runs.group(1)) > 50


def _seeds(folder: Path, *texts: str | bytes) -> None:
    (folder / "seeds").mkdir()
    for number, text in enumerate(texts):
        data = text.encode() if isinstance(text, str) else text
        (folder / "seeds" / str(number)).write_bytes(data)


def _program(folder: Path, *options: str) -> Path:
    """Return a small program with debug information."""
    program = folder / "program"
    source = "int main(int n, char **v) { char *p = v[0]; while (n--) *p += 1; return *p; }"
    subprocess.run(
        ["gcc", "-g", "-O1", "-nostdlib", "-shared", "-fPIC", "-Wl,--build-id", *options,
         "-x", "c", "-", "-o", program],
        input=source, text=True, check=True,
    )  # fmt: skip
    return program


def _recordings(folder: Path) -> list[bytes]:
    """Return what the recorder writes of a program that forks, executes and has doubles."""
    recorder = HOST_RECORDER.obtain(Reporter())
    traced = folder / "trouble"
    source = TRACED / "trouble.c"
    subprocess.run(["gcc", "-O2", "-static", "-pthread", "-o", traced, source], check=True)
    recordings = []
    for options, what in ((["-c"], "exit"), ([], "exit"), (["-z"], "segv")):
        file = folder / "trace.data"
        subprocess.run([recorder, *options, "-o", file, "--", traced, what, "0"], check=True)
        recordings.append(file.read_bytes())
    return recordings


@pytest.mark.parametrize("target", ["recording", "elf"])
def test_a_damaged_file_is_read_or_refused_in_a_sentence(target: str, tmp_path: Path) -> None:
    if target == "recording":
        _seeds(tmp_path, *_recordings(tmp_path))
    else:
        _seeds(tmp_path, *(_program(tmp_path, option).read_bytes() for option in ("-g", "-s")))
    command: list[str | Path] = [sys.executable, "-m", "tests.fuzz.targets", target]
    _run(command, tmp_path)


@pytest.mark.parametrize("target", ["ftbench", "pmu"])
def test_any_options_are_taken_or_refused(target: str, tmp_path: Path) -> None:
    fuzzer = tmp_path / "fuzzer"
    if target == "ftbench":
        bench = REPOSITORY / "bench"
        folders = [bench, bench / "arch/x86"]
        sources = [
            *(file for file in bench.glob("*.c") if file.name != "ftbench.c"),
            *bench.glob("arch/x86/*.c"),
            *bench.glob("experiments/*.c"),
        ]
        _seeds(tmp_path, *_WORDS_OF_FTBENCH)
    else:
        pmu = REPOSITORY / "pmu"
        folders = [pmu]
        sources = [pmu / name for name in ("options.c", "hierarchy.c", "cache.c")]
        _seeds(tmp_path, *_OPTIONS_OF_PMU)
    subprocess.run(
        ["clang", "-g", "-O1", "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all",
         "-D_GNU_SOURCE", "-pthread", *(f"-I{folder}" for folder in folders), "-o", fuzzer,
         HERE / f"{target}_options.c", *sources],
        check=True,
    )  # fmt: skip
    _run([fuzzer, "-close_fd_mask=2"], tmp_path)
