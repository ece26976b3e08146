# SPDX-License-Identifier: GPL-2.0
"""The lab's kernel configuration is Debian's but for the differences that are listed."""

import functools
import itertools
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from firsttouch import processes
from firsttouch.building.host_tools import cross_compile
from firsttouch.building.kernel import KernelImage
from firsttouch.building.overlay import lay_over, patches_of
from firsttouch.building.source import FLAVOURS, KernelSource
from firsttouch.catalog.arms import Kernel, Kind
from firsttouch.catalog.kernels import release_names
from firsttouch.files import LINUX
from firsttouch.progress import Reporter
from firsttouch.tables import read_toml

pytestmark = pytest.mark.kernel

_DIFFERENCES = LINUX / "configs/differences.toml"
# Where the path of a fault is, and what hardens or traces it.
_FOLDERS = ("arch/arm64", "mm", "kernel", "security", "init", "lib")

Differences = Callable[[str], dict[str, tuple[str, str]]]


def _symbols(tree: Path) -> set[str]:
    """Return the options that the Kconfig files of those folders define."""
    files = [file for folder in _FOLDERS for file in (tree / folder).rglob("Kconfig*")]
    return {
        name
        for file in files
        for name in re.findall(r"^\s*(?:menu)?config (\w+)", file.read_text(), re.M)
    }


def _options(config: Path) -> dict[str, str]:
    return dict(re.findall(r"^CONFIG_(\w+)=(.*)$", config.read_text(), re.M))


@pytest.fixture(scope="session")
def differences(
    sources: Callable[[str], KernelSource], tmp_path_factory: pytest.TempPathFactory
) -> Differences:
    """The options in which Debian's configuration and the lab's differ, with both values."""

    @functools.cache
    def compare(release: str) -> dict[str, tuple[str, str]]:
        source = sources(release)
        tree, folder = source.tree(), tmp_path_factory.mktemp("configuration")
        lab, debian = folder / "lab", folder / "debian"
        KernelImage(source, Kernel("stock")).configure(tree, lab)
        debian.mkdir()
        shutil.copyfile(source.configuration(), debian / ".config")
        processes.output(
            ["make", "-s", f"-C{tree}", f"O={debian}", "ARCH=arm64",
             f"CROSS_COMPILE={cross_compile()}", "olddefconfig"]
        )  # fmt: skip
        theirs, ours = _options(debian / ".config"), _options(lab / ".config")
        return {
            name: (theirs.get(name, "n"), ours.get(name, "n"))
            for name in _symbols(tree)
            if theirs.get(name, "n") != ours.get(name, "n")
        }

    return compare


def _listed() -> list[str]:
    tables = read_toml(_DIFFERENCES).tables("difference")
    return [option for table in tables for option in table.strings("options")]


@pytest.mark.parametrize("release", release_names())
def test_each_difference_from_debian_has_its_reason(differences: Differences, release: str) -> None:
    differing = differences(release)
    assert len(differing) > 50
    unlisted = {name: values for name, values in differing.items() if name not in _listed()}
    assert not unlisted, f"give a reason in {_DIFFERENCES.name}, or keep Debian's value"


def test_no_reason_is_left_for_what_is_no_difference(differences: Differences) -> None:
    differing = set().union(*(differences(release) for release in release_names()))
    assert not set(_listed()) - differing
    assert len(_listed()) == len(set(_listed()))
    assert all(table.take("reason", str) for table in read_toml(_DIFFERENCES).tables("difference"))


@pytest.mark.parametrize("release", release_names())
def test_what_stands_on_the_path_of_a_fault_is_as_in_debian(
    differences: Differences, sources: Callable[[str], KernelSource], release: str
) -> None:
    """Not only without a difference: Debian has them, or this test would not show anything."""
    theirs = _options(sources(release).configuration())
    on = {
        "ARM64_ERRATUM_4118414", "MEMCG", "LRU_GEN_ENABLED", "NUMA", "HARDENED_USERCOPY",
        "INIT_ON_ALLOC_DEFAULT_ON", "RANDOMIZE_BASE", "UNMAP_KERNEL_AT_EL0", "FUNCTION_TRACER",
        "TRANSPARENT_HUGEPAGE_ALWAYS", "ARM64_PTR_AUTH_KERNEL", "TASK_DELAY_ACCT", "MMU_NOTIFIER",
    }  # fmt: skip
    assert {name for name in on if theirs.get(name) == "y"} == on
    assert not on & differences(release).keys()


@pytest.mark.regress
@pytest.mark.parametrize("release", release_names())
def test_each_package_is_a_configuration_that_the_kernel_accepts(
    sources: Callable[[str], KernelSource], reporter: Reporter, tmp_path: Path, release: str
) -> None:
    source = sources(release)
    lay_over(source, tmp_path / "changed", patches_of(source.release))
    (tmp_path / "stock").symlink_to(source.tree())
    kinds: tuple[Kind, ...] = ("changed", "stock")
    for flavour, kind in itertools.product(FLAVOURS, kinds):
        image = KernelImage(source, Kernel(kind), flavour)
        image.configure(tmp_path / kind, tmp_path / f"{kind}-{flavour}")
