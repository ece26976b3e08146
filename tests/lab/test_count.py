# SPDX-License-Identifier: GPL-2.0
"""`firsttouch count`, in guests: the commands of docs/how-to/count.md."""

import json
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from firsttouch.building.host_tools import cross_compile
from firsttouch.files import REPOSITORY
from tests.conftest import TRIED, Finished, Firsttouch

pytestmark = pytest.mark.kernel

# Less than a huge page has.
_PAGES = 300
_SOURCE = """
#include <stdio.h>
#include <sys/mman.h>
int main(int argc, char **)
{
	char *at = mmap(NULL, %d << 12, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int page = 0; page < %d; page++)
		at[page << 12] = 1;
	printf("%%d\\n", argc);
	return argc - 1;
}
"""


@pytest.fixture
def mybench(tmp_path: Path) -> Path:
    """A benchmark without libraries; its exit status is the number of its arguments."""
    return _compiled(tmp_path, _PAGES)


def _compiled(folder: Path, pages: int) -> Path:
    source = folder / "mybench.c"
    source.write_text(_SOURCE % (pages, pages))
    return _compile(source, folder / "mybench")


def _compile(source: Path, program: Path) -> Path:
    gcc = [f"{cross_compile()}gcc", "-std=gnu2x", "-static", "-O2", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([*gcc, "-o", program, source], check=True)
    return program


def _counts(done: Finished) -> list[dict[str, float]]:
    assert done.returncode == 0, done.stderr
    return [kernel["counts"] for kernel in json.loads(done.stdout)["kernels"]]


def test_a_program_on_two_releases_without_a_build(firsttouch: Firsttouch, mybench: Path) -> None:
    """The answer names no build, and a second run from nothing gives the same counts."""
    words = ("--release", "6.12", "--release", "7.3", "--", "./mybench")
    done = firsttouch("count", *words)
    assert done.returncode == 0, done.stderr
    assert "Building kernel" not in done.stderr
    state, head, *rows = done.stdout.splitlines()
    assert state == "The same outcome: exit status 0, 2 bytes of output."
    assert head.split() == ["6.12", "debian", "7.3", "debian", "change"]
    assert any(row.startswith("instructions kernel") and row.endswith("%") for row in rows)
    # The log there is of the first run, or of another command since.
    assert "kernel's log" not in firsttouch("count", *words).stderr
    old, new = _counts(firsttouch("count", "--json", *words))
    assert _PAGES < old["page_faults"] < _PAGES + 100
    # 7.3 passes the program one more entry of its auxiliary vector.
    assert 0 <= new["instructions_user"] - old["instructions_user"] < 10
    assert old["instructions_kernel"] < new["instructions_kernel"]


def test_arms_and_packages(firsttouch: Firsttouch) -> None:
    words = ("--arm", "thp-madvise", "--arm", "inorder", "--packages", "dash,coreutils")
    script = ("/bin/sh", "-c", "seq 30000 | sort -rn | tail -n 1")
    done = firsttouch("count", *words, "--", *script)
    assert done.returncode == 0, done.stderr
    assert "exit status 0, 2 bytes of output" in done.stdout
    madvise, inorder = _counts(firsttouch("count", "--json", *words, "--", *script))
    assert inorder["page_faults"] < madvise["page_faults"]


def test_processes_apart_without_another_count(firsttouch: Firsttouch) -> None:
    """Their instructions sum up to the whole; a run that is not traced counts what it did."""
    words = ("--json", "--packages", "dash,coreutils", "--")
    script = ("sh", "-c", "seq 30000 | sort -rn | sort -n | tail -n 1")
    (plain,) = _counts(firsttouch("count", *words, *script))
    done = firsttouch("count", "--processes", *words, *script)
    (counts,) = _counts(done)
    assert counts == plain
    (kernel,) = json.loads(done.stdout)["kernels"]
    assert kernel["processes"].keys() == {"sh", "seq", "sort 1", "sort 2", "tail"}
    # Tracing and switches between processes are in the sum only or in the whole only.
    assert sum(kernel["processes"].values()) == pytest.approx(counts["instructions"], rel=0.1)
    printed = firsttouch("count", "--processes", *words[1:], *script).stdout
    assert "processes, instructions" in printed


def test_a_patch_and_a_program(firsttouch: Firsttouch, mybench: Path) -> None:
    """The patch of known cost executes one ISB more for each page."""
    patch = TRIED / "0001-mm-synchronize-each-first-touch.patch"
    done = firsttouch("try", patch, "--json", "--", "./mybench")
    assert done.returncode == 0, done.stderr
    (arm,) = json.loads(done.stdout)["arms"]
    (cell,) = arm["cells"]
    counts = cell["counts"]["isb"]
    assert _PAGES <= counts["arm"] - counts["stock"] < _PAGES + 100


def test_a_root_against_another_with_a_limit(
    firsttouch: Firsttouch, mybench: Path, tmp_path: Path
) -> None:
    """The head's program touches 100 pages more: `--fail-if` ends with status 1."""
    for name, pages in (("base", _PAGES), ("head", _PAGES + 100)):
        program = _compiled(tmp_path, pages)
        with tarfile.open(tmp_path / f"{name}.tar", "w") as tar:
            tar.add(program, "mybench")
        program.unlink()
    both = firsttouch(
        "count", "--root", "base.tar", "--root", "head.tar", "--json", "--", "./mybench"
    )
    base, head = _counts(both)
    assert head["page_faults"] - base["page_faults"] == 100
    alone = firsttouch("count", "--root", "base.tar", "--json", "--", "./mybench")
    (tmp_path / "base.json").write_text(alone.stdout)
    against = ("count", "--root", "head.tar", "--against", "base.json")
    done = firsttouch(*against, "--fail-if", "page_faults>+0.5%", "--", "./mybench")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("firsttouch: page_faults +")
    assert firsttouch(*against, "--fail-if", "page_faults>500%", "--", "./mybench").returncode == 0


@pytest.mark.parametrize(
    ("words", "given", "size"),
    [
        (("--", "sort", "-u"), {"input": "one\ntwo\n" * 50}, 8),
        (("--", "wc", "-c"), {"stdin": subprocess.DEVNULL}, 2),
        (("--nodes", "2", "--", "cat", "/sys/devices/system/node/online"), {}, 4),
    ],
)
def test_a_program_reads_a_pipe_or_nothing_or_what_the_guest_has(
    firsttouch: Firsttouch, words: tuple[str, ...], given: dict[str, Any], size: int
) -> None:
    done = subprocess.run(
        firsttouch.command("count", "--packages", "coreutils", *words),
        cwd=firsttouch.directory, env=firsttouch.environment(),
        capture_output=True, text=True, check=True, **given,
    )  # fmt: skip
    assert done.stdout.startswith(f"Ended: exit status 0, {size} bytes of output.\n")


def test_what_is_left_in_the_background_is_counted(firsttouch: Firsttouch) -> None:
    work = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo done"
    words = ("count", "--json", "--packages", "dash", "--", "sh", "-c", f"({work}) & exit 0")
    (counts,) = _counts(firsttouch(*words))
    assert counts["output_bytes"] == len("done\n")
    assert counts["instructions_user"] > 1_000_000


def test_layouts_give_the_range_of_changes(firsttouch: Firsttouch, mybench: Path) -> None:
    words = ("--layouts", "2", "--release", "6.12", "--release", "7.3", "--", "./mybench")
    done = firsttouch("count", *words)
    assert done.returncode == 0, done.stderr
    head, faults = (
        line for line in done.stdout.splitlines() if "layouts" in line or "page faults" in line
    )
    assert head.endswith("in 2 layouts")
    assert " to " in faults
    kernels = json.loads(firsttouch("count", "--json", *words).stdout)["kernels"]
    assert all(kernel["layouts"][0] == kernel["counts"] for kernel in kernels)
    assert [len(kernel["layouts"]) for kernel in kernels] == [2, 2]


def test_another_end_is_said_before_any_count(firsttouch: Firsttouch, mybench: Path) -> None:
    before = firsttouch("count", "--json", "--", "./mybench")
    Path(firsttouch.directory, "before.json").write_text(before.stdout)
    words = ("--against", "before.json", "--out", "b", "--", "./mybench", *127 * ["\udcff"])
    done = firsttouch("count", *words)
    assert done.returncode == 127
    assert not [*Path(firsttouch.directory, "b/log").glob("guard*")]
    assert done.stdout.splitlines()[0] == (
        "The outcomes differ, by status or output, so the counts do not compare: 6.12 debian in "
        "before.json with exit status 0, 2 bytes of output; 6.12 debian with exit status 127, "
        "4 bytes of output."
    )


@pytest.mark.parametrize(
    ("name", "function", "calls"),
    [("mincore", "mincore_pte_range", {"mincore": 200}), ("mprotect", "change_protection", {})],
)
def test_functions_say_where_a_release_differs(
    firsttouch: Firsttouch, tmp_path: Path, name: str, function: str, calls: dict[str, int]
) -> None:
    """What counts show of a case that was reported, and that they call nothing slower."""
    _compile(REPOSITORY / f"tests/data/programs/{name}.c", tmp_path / name)
    words = ("--functions", "--release", "6.12", "--release", "7.3", "--", f"./{name}")
    done = firsttouch("count", *words)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("The same outcome: exit status 0")
    assert any(line.startswith(function) and " +" in line for line in done.stdout.splitlines()), (
        done.stdout
    )
    assert not {"slower", "faster", "time"} & set(done.stdout.split())
    old, new = json.loads(firsttouch("count", "--json", *words).stdout)["kernels"]
    assert new["functions"][function] > 1.3 * old["functions"][function]
    assert calls.items() <= new["system_calls"].items()
    assert old["system_calls"] == new["system_calls"]


def test_another_state_of_memory_is_said_before_any_count(
    firsttouch: Firsttouch, tmp_path: Path
) -> None:
    _compile(REPOSITORY / "tests/data/programs/pageout.c", tmp_path / "pageout")
    done = firsttouch("count", "--arm", "stock", "--arm", "thp-madvise", "--", "./pageout")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].endswith(
        "But its memory use differs: thp fault alloc 8 on 6.12 stock, 0 on 6.12 thp-madvise."
    )
