# SPDX-License-Identifier: GPL-2.0
"""Each series alone: git am takes it, it is clean, and the tree builds after each patch."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from firsttouch.building.host_tools import cross_compile, processors
from firsttouch.building.kernel import KernelImage
from firsttouch.building.overlay import all_series, apply, link_tree, patches_of, write_series
from firsttouch.building.source import KernelSource
from firsttouch.catalog.arms import Kernel
from firsttouch.catalog.kernels import release_names
from firsttouch.cli.main import main
from firsttouch.files import LINUX, REPOSITORY

pytestmark = pytest.mark.kernel

Sources = Callable[[str], KernelSource]
_AUTHOR = "A. Tester <tester@example.org>"
# All that a series changes lies in these, of which a whole build takes minutes.
_BUILT = ("arch/arm64/", "mm/", "fs/exec.o", "kernel/fork.o", "drivers/base/cacheinfo.o",
          "drivers/of/base.o")  # fmt: skip
_BUILT_WITH_ACPI = ("drivers/acpi/pptt.o",)


def _run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module", params=release_names())
def source(request: pytest.FixtureRequest, sources: Sources) -> KernelSource:
    return sources(request.param)


@pytest.fixture(scope="module", params=all_series())
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def patches(
    source: KernelSource, name: str, tmp_path_factory: pytest.TempPathFactory
) -> list[Path]:
    return write_series(source, all_series()[name], tmp_path_factory.mktemp("series"), _AUTHOR)


def _copy(source: KernelSource, files: list[str], tree: Path) -> None:
    """Copy those of `files` that `source` has: a whole tree takes a minute to delete."""
    unchanged = source.tree()
    for file in files:
        if (unchanged / file).exists():
            (tree / file).parent.mkdir(parents=True, exist_ok=True)
            (tree / file).write_bytes((unchanged / file).read_bytes())


def _commit(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "A. Tester")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "tester@example.org")
    for words in ("init -q", "add -A -f", "commit -q -m base"):
        _run("git", *words.split(), cwd=repository)


def test_git_am_accepts_the_series_and_makes_the_tree_that_is_built(
    source: KernelSource, name: str, patches: list[Path], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    ours = patches_of(source.release, name)
    touched = sorted({file for patch in ours for file in patch.touched(source.release)})
    repository, changed = tmp_path / "linux", tmp_path / "changed"
    for tree in (repository, changed):
        _copy(source, touched, tree)
    for patch in ours:
        apply(patch, source.release, changed)
    _commit(repository, monkeypatch)
    _run("git", "am", "--empty=drop", *patches, cwd=repository)
    assert _run("git", "status", "--porcelain", cwd=repository) == ""
    said = _run("git", "log", "--format=%s|%an <%ae>", "--reverse", cwd=repository).splitlines()
    assert said[1:] == [f"{patch.subject}|{patch.author or _AUTHOR}" for patch in ours]
    for file in touched:
        built = (changed / file).read_text().replace("M:\tAUTHOR", f"M:\t{_AUTHOR}")
        assert (repository / file).read_text() == built, file


def test_all_series_apply_in_order_by_the_command_that_is_printed_and_documented(
    source: KernelSource, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    ours = {each.name: each for name in all_series() for each in patches_of(source.release, name)}
    repository = tmp_path / "linux"
    _copy(source, [f for each in ours.values() for f in each.touched(source.release)], repository)
    _commit(repository, monkeypatch)
    main(["kernel", "series", "--release", source.release.name, "--out", str(tmp_path)])
    command = capsys.readouterr().err.split("`")[1].removesuffix(f"{tmp_path}/FEATURE/*.patch")
    assert command in (REPOSITORY / "docs/how-to/real-hardware.md").read_text()
    for name in all_series():
        _run(*command.split(), *sorted((tmp_path / name).iterdir()), cwd=repository)
    said = _run("git", "log", "--format=%s", cwd=repository).splitlines()
    assert sorted(said) == sorted(["base", *(each.subject for each in ours.values())])


def test_the_first_mail_has_figures_answers_and_what_it_applies_to(
    source: KernelSource, name: str, patches: list[Path]
) -> None:
    letter = patches[0].read_text()
    assert f"Applies to Linux {source.version}, the package with SHA-256" in letter
    assert source.sha256 in letter
    if all_series()[name].cover:
        assert all_series()[name].title in letter
        assert "***" not in letter and "{" not in letter and "<!--" not in letter
        assert letter.count("\n- ") >= 5


def test_the_series_is_the_same_bytes_each_time_and_replaces_older_patches(
    source: KernelSource, name: str, patches: list[Path], tmp_path: Path
) -> None:
    (tmp_path / "0042-of-an-older-series.patch").write_text("stale\n")
    again = write_series(source, all_series()[name], tmp_path, _AUTHOR)
    assert sorted(tmp_path.iterdir()) == again
    assert [file.name for file in again] == [file.name for file in patches]
    assert [file.read_bytes() for file in again] == [file.read_bytes() for file in patches]


def test_checkpatch_has_nothing_to_say(
    source: KernelSource, name: str, patches: list[Path], tmp_path: Path
) -> None:
    """There is no repository here to look the commits up in that are named.

    What others wrote keeps their message.
    """
    ours = patches_of(source.release, name)
    ignored = "UNKNOWN_COMMIT_ID"
    if source.release.name == "6.12":
        # It asks for a line of MAINTAINERS even where mm/ has its people.
        ignored += ",FILE_PATH_CHANGES"
    for patch, file in zip(ours, patches[-len(ours) :], strict=True):
        if not patch.author:
            _run(
                "perl", source.tree() / "scripts/checkpatch.pl", "--strict", "--quiet",
                "--ignore", ignored, "--root", source.tree(), file, cwd=tmp_path,
            )  # fmt: skip


def _make(tree: Path, objects: Path, *words: str) -> str:
    return _run(
        "make", "-s", f"-j{processors()}", "-C", tree, f"O={objects}", "ARCH=arm64",
        f"CROSS_COMPILE={cross_compile()}", *words, cwd=objects,
    )  # fmt: skip


def _options() -> str:
    """The options of all series; a tree without a series has not its options."""
    return "".join(file.read_text() for file in sorted((LINUX / "configs/features").iterdir()))


# Of each function that calls pte_unmap(): sparse does not see that pte_offset_map(), which is in
# another file, begins a critical section of RCU.
_PTE_UNMAP = " - unexpected unlock"


def test_the_kernel_code_builds_without_warnings_and_sparse_finds_nothing(
    source: KernelSource, tmp_path: Path
) -> None:
    """All series together. The rest of the kernel has warnings of its own, so it isn't checked."""
    tree = tmp_path / "linux"
    objects = tree / "objects"
    ours = patches_of(source.release)
    link_tree(source.tree(), tree)
    for patch in ours:
        apply(patch, source.release, tree)
    KernelImage(source, Kernel("stock")).configure(tree, objects)
    with (objects / ".config").open("a") as config:
        config.write(_options())
    _make(tree, objects, "olddefconfig")
    built = sorted(
        {
            str(Path(file).with_suffix(".o"))
            for patch in ours
            for file in patch.touched(source.release)
            # Built as a part of the file that includes it.
            if file.endswith(".c") and not file.startswith("tools/") and "_kunit" not in file
        }
    )
    assert built
    said = _make(tree, objects, "W=1", "C=2", *built)
    # An older sparse does not understand all headers of a newer kernel; its messages
    # about them do not concern the series.
    new = {Path(file).name for patch in ours for file in patch.files}
    complaints = [
        line
        for line in said.splitlines()
        if re.search(r": (warning|error):", line)
        and Path(line.split(":")[0]).name in new
        and not line.endswith(_PTE_UNMAP)
    ]
    assert not complaints, "\n".join(complaints)


@pytest.mark.regress
@pytest.mark.parametrize("configuration", ["lab", "defconfig", "tinyconfig"])
def test_the_tree_builds_after_each_patch(
    source: KernelSource, name: str, configuration: str, tmp_path: Path
) -> None:
    """The smaller a configuration, the fewer headers include what others forgot."""
    tree = tmp_path / "linux"
    objects = tree / "objects"
    link_tree(source.tree(), tree)
    if configuration == "lab":
        KernelImage(source, Kernel("stock")).configure(tree, objects)
    else:
        objects.mkdir()
        _make(tree, objects, configuration)
    options = _options()
    saved = (objects / ".config").read_text()
    built = _BUILT + _BUILT_WITH_ACPI * ("CONFIG_ACPI=y" in saved)
    for patch in patches_of(source.release, name):
        apply(patch, source.release, tree)
        (objects / ".config").write_text(saved + options)
        _make(tree, objects, "olddefconfig")
        _make(tree, objects, *built)
    shutil.rmtree(objects)
