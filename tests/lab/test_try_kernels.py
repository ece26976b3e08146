# SPDX-License-Identifier: GPL-2.0
"""`firsttouch try` with kernels that run: patches, options and boot words of known cost."""

import re
import shutil
from pathlib import Path

import pytest

from firsttouch.building.source import debian_source
from firsttouch.building.store import MANIFEST
from firsttouch.catalog.kernels import load_release
from firsttouch.progress import Reporter
from firsttouch.tables import Fields, parse_json
from tests.conftest import TRIED, Firsttouch
from tests.lab.conftest import git

pytestmark = pytest.mark.kernel

_CELL = ("--experiment", "populate", "--set", "by=store", "--set", "page=4k", "--size", "64M")
_FAULTS = (64 << 20) // 4096


def _try(firsttouch: Firsttouch, *arguments: str | Path, **environment: str) -> tuple[Fields, str]:
    """Return the one cell of `firsttouch try --json`, and what it prints without --json."""
    printed = firsttouch("try", *arguments, **environment)
    assert printed.returncode == 0, printed.stderr
    again = firsttouch("try", *arguments, "--json", **environment)
    # All of it is in the store now.
    assert "Measuring" not in again.stderr
    (arm,) = parse_json(again.stdout, "try --json").tables("arms")
    (cell,) = arm.tables("cells")
    return cell, printed.stdout


def _change(cell: Fields, count: str) -> int:
    both = cell.table("counts").table(count)
    return both.take("arm", int) - both.take("stock", int)


def test_two_kernels_that_do_the_same_are_equal_to_the_last_count(
    stock_image: Path,
    firsttouch: Firsttouch,
    fake_linux: Path,
    configured_cache: Path,
) -> None:
    """The fake tree's image is a real kernel; the patch changes bytes that it does not read."""
    cell, printed = _try(
        firsttouch, TRIED / "0001-mm-move-the-code.patch", "--source", fake_linux, *_CELL,
        FAKE_IMAGE=str(stock_image),
    )  # fmt: skip
    assert len(list(configured_cache.glob("images/*/Image"))) == 2
    assert cell.take("kind", str) == "equal"
    assert cell.take("faults", int) == _FAULTS
    assert "Nothing changed.\n" in printed


def test_what_init_on_alloc_costs(firsttouch: Firsttouch, stock_image: Path) -> None:
    cell, printed = _try(firsttouch, "--boot", "init_on_alloc=0", *_CELL)
    assert cell.take("kind", str) == "changed"
    assert _change(cell, "page_faults") == 0
    assert _change(cell, "instructions_kernel") < 0
    assert "functions of populate store 4k 64 MiB" in printed


@pytest.mark.regress
def test_what_a_memory_cgroup_costs(firsttouch: Firsttouch) -> None:
    (firsttouch.directory / "off.config").write_text("# CONFIG_MEMCG is not set\n")
    cell, printed = _try(firsttouch, "--config", "off.config", *_CELL)
    assert cell.take("kind", str) == "changed"
    assert _change(cell, "page_faults") == 0
    # Each page is charged, at the price of a few dozen instructions.
    assert _change(cell, "instructions_kernel") < -10 * _FAULTS
    assert re.search(r"^\w*(memcg|mem_cgroup|charge)\w* +[\d.]+ +0\.00 +-", printed, re.M)


@pytest.mark.regress
def test_code_that_moves_changes_nothing(firsttouch: Firsttouch) -> None:
    cell, printed = _try(firsttouch, TRIED / "0001-mm-move-the-code.patch", *_CELL)
    assert cell.take("kind", str) in ("equal", "chance")
    assert "Nothing changed.\n" in printed


@pytest.mark.regress
def test_a_kernel_that_firmware_would_unpack_boots_as_any_other(
    firsttouch: Firsttouch, tmp_path: Path
) -> None:
    """With CONFIG_EFI_ZBOOT `make` alone builds vmlinuz.efi, which QEMU cannot boot."""
    fragment = tmp_path / "zboot.config"
    fragment.write_text("CONFIG_EFI_ZBOOT=y\n")
    cell, _ = _try(firsttouch, "--config", fragment, *_CELL)
    assert cell.take("faults", int) == _FAULTS
    assert cell.take("kind", str) in ("chance", "equal")


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """Return a git tree of the kernel of 20 commits after the first; the 13th costs an ISB."""
    tree = tmp_path / "linux"
    source = debian_source(load_release("6.12"), Reporter()).tree()
    # The store's list of the files is no file of the kernel's.
    shutil.copytree(source, tree, symlinks=True, ignore=shutil.ignore_patterns(MANIFEST))
    git(tree, "init", "-q")
    # What a release has and .gitignore names, as debian/.
    git(tree, "add", "-A", "-f")
    git(tree, "commit", "-q", "-m", "Linux")
    for number, file in enumerate(sorted((tree / "mm").glob("m*.c"))[:20], 1):
        if number == 13:
            git(tree, "apply", "--index", TRIED / "0001-mm-synchronize-each-first-touch.patch")
        else:
            file.write_text(f"{file.read_text()}/* {number} */\n")
        git(tree, "commit", "-q", "-a", "-m", f"mm: change {number}")
    return tree


@pytest.mark.regress
def test_the_commit_that_costs_instructions_is_found(firsttouch: Firsttouch, history: Path) -> None:
    done = firsttouch("try", "--bisect", "HEAD~20..HEAD", "--source", history, *_CELL,
                      "--metric", "isb")  # fmt: skip
    assert done.returncode == 0, done.stderr
    first, counts, *_ = done.stdout.splitlines()
    assert first.endswith(" mm: change 13")
    counted = re.findall(r"([\d,]+) (?:before|since)", counts)
    before, since = (int(count.replace(",", "")) for count in counted)
    assert abs(since - before - _FAULTS) <= 30
