# SPDX-License-Identifier: GPL-2.0
"""The series: git am takes it, it makes the tree the lab builds, and it is clean."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from firsttouch.build.host_tools import cross_compile
from firsttouch.build.images import KernelImage
from firsttouch.build.overlay import lay_over, series
from firsttouch.build.series import touched_files, write_series
from firsttouch.build.sources import KernelSource
from firsttouch.catalog.releases import release_names

pytestmark = pytest.mark.kernel

Sources = Callable[[str], KernelSource]
_AUTHOR = "A. Tester <tester@example.org>"


def _run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module", params=release_names())
def source(request: pytest.FixtureRequest, sources: Sources) -> KernelSource:
    return sources(request.param)


@pytest.fixture(scope="module")
def patches(source: KernelSource, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_series(source, tmp_path_factory.mktemp("series"), _AUTHOR)


@pytest.fixture(scope="module")
def changed(source: KernelSource, tmp_path_factory: pytest.TempPathFactory) -> Path:
    tree = tmp_path_factory.mktemp("tree") / "linux"
    lay_over(source, tree)
    return tree


def test_git_am_accepts_the_series_and_makes_the_tree_that_is_built(
    source: KernelSource, patches: list[Path], changed: Path, tmp_path: Path
) -> None:
    touched = sorted({f for patch in series(source.release) for f in touched_files(patch, source)})
    repository = tmp_path / "linux"
    for name in touched:
        if (source.tree() / name).exists():
            (repository / name).parent.mkdir(parents=True, exist_ok=True)
            (repository / name).write_bytes((source.tree() / name).read_bytes())
    git = ("git", "-c", "user.name=A. Tester", "-c", "user.email=tester@example.org")
    _run("git", "init", "-q", cwd=repository)
    _run(*git, "add", "-A", cwd=repository)
    _run(*git, "commit", "-q", "-m", "base", cwd=repository)
    _run(*git, "am", *patches, cwd=repository)
    assert _run("git", "status", "--porcelain", cwd=repository) == ""
    subjects = _run("git", "log", "--format=%s", "--reverse", cwd=repository).splitlines()[1:]
    assert subjects == [patch.subject for patch in series(source.release)]
    for name in touched:
        assert (repository / name).read_bytes() == (changed / name).read_bytes(), name


def test_the_series_is_the_same_bytes_each_time(
    source: KernelSource, patches: list[Path], tmp_path: Path
) -> None:
    again = write_series(source, tmp_path, _AUTHOR)
    assert [file.name for file in again] == [file.name for file in patches]
    assert [file.read_bytes() for file in again] == [file.read_bytes() for file in patches]


def test_checkpatch_has_nothing_to_say(
    source: KernelSource, patches: list[Path], tmp_path: Path
) -> None:
    """Whoever posts the series signs it off and decides about MAINTAINERS.

    The selftests use ELF's and C's own names, which have capitals.
    """
    for patch in patches:
        _run(
            "perl", source.tree() / "scripts/checkpatch.pl", "--strict", "--quiet", "--no-signoff",
            "--root", source.tree(), "--ignore", "FILE_PATH_CHANGES,CAMELCASE", patch,
            cwd=tmp_path,
        )  # fmt: skip


def test_the_kernel_code_builds_without_warnings_and_sparse_finds_nothing(
    source: KernelSource, changed: Path, tmp_path: Path
) -> None:
    """Only files of the series are checked: the rest of the kernel has warnings of its own."""
    image = KernelImage(source, changed=True)
    objects = tmp_path / "objects"
    image.configure(changed, objects)
    ours = sorted(
        Path(name).with_suffix(".o")
        for patch in series(source.release)
        for name in patch.files
        if name.startswith("arch/") and name.endswith(".c")
    )
    assert ours
    said = _run(
        "make", "-s", "-j2", "-C", changed, f"O={objects}", "ARCH=arm64", "W=1", "C=2",
        f"CROSS_COMPILE={cross_compile()}", *ours, "arch/arm64/mm/fault.o",
        cwd=tmp_path,
    )  # fmt: skip
    # An older sparse does not understand all headers of a newer kernel; its messages
    # about them do not concern the series.
    names = {Path(name).name for patch in series(source.release) for name in patch.files}
    complaints = [
        line
        for line in said.splitlines()
        if re.search(r": (warning|error):", line) and Path(line.split(":")[0]).name in names
    ]
    assert not complaints, "\n".join(complaints)
