# SPDX-License-Identifier: GPL-2.0
"""Fixtures of all tests: the lab as a user runs it, the fake kernel tree, the real kernels."""

import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from firsttouch.building.kernel import KernelImage
from firsttouch.building.programs import HOST_BENCH
from firsttouch.building.source import Configuration, KernelSource, debian_source
from firsttouch.building.store import store_root
from firsttouch.catalog.arms import Kernel
from firsttouch.catalog.kernels import load_release
from firsttouch.files import REPOSITORY, users_folder
from firsttouch.progress import Reporter
from tests.support import golden

# Files whose tests share a module's fixture, as a guest, a tree, an installed
# package, the results behind the documents; or the machine's hugeTLB pool.
# Where a test's parameters begin with a release, they do so by release.
_TOGETHER = (
    "tests/bench/test_guest.py",
    "tests/bench/test_hugepages.py",
    "tests/cli/test_installed.py",
    "tests/docs/test_documents.py",
    "tests/linux/test_configuration.py",
    "tests/linux/test_series.py",
    "tests/trace/test_guest.py",
)
_RELEASE = re.compile(r"\[(\d+\.\d+)\b")


class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Every test goes to a free worker by itself, except those in `_TOGETHER`.

    pytest-xdist's own marks for that (--dist=loadgroup) do nothing with the pytest that is
    locked: 3.8 writes them into a field that 9.2 does not read.
    """

    def _split_scope(self, nodeid: str) -> str:
        """Return what a test has in common with those that run on the same worker."""
        file = nodeid.split("::")[0]
        release = _RELEASE.search(nodeid)
        return f"{file} {release[1] if release else ''}" if file in _TOGETHER else nodeid


FAKE_LINUX = REPOSITORY / "tests/building/fakelinux"
# Patches and fragments that tests try; the patches fit the fake tree and real ones.
TRIED = REPOSITORY / "tests/lab/tried"
# What `firsttouch kernel fetch --configuration` gets, so that a fake tree is built without apt.
FAKE_CONFIGURATION = REPOSITORY / "tests/building/debian.config"


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    pluginmanager.register(golden)


_XDG_CONFIG_HOME = pytest.StashKey[tempfile.TemporaryDirectory[str]]()


def pytest_configure(config: pytest.Config) -> None:
    # A developer's own machines, experiments and arms are no part of what is tested. Set
    # before tests are collected, some of which read the catalogue; what they start inherits it.
    config.stash[_XDG_CONFIG_HOME] = tempfile.TemporaryDirectory(prefix="firsttouch-config-")
    os.environ["XDG_CONFIG_HOME"] = config.stash[_XDG_CONFIG_HOME].name


def pytest_unconfigure(config: pytest.Config) -> None:
    config.stash[_XDG_CONFIG_HOME].cleanup()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Scheduling:
    return Scheduling(config, log)


def pytest_report_header() -> list[str]:
    return [
        "layers: fast (no kernel needed), long (none either, but seconds each), "
        "kernel (real kernels built and booted in QEMU), regress (in more configurations)"
    ]


Finished = subprocess.CompletedProcess[str]
# Seconds that a command may take.
_PATIENCE = 1800


@dataclass(frozen=True)
class Firsttouch:
    """The command line, run as a user runs it."""

    directory: Path

    def command(self, *arguments: str | Path) -> list[str]:
        return [sys.executable, "-m", "firsttouch", *map(str, arguments)]

    def environment(self, **extra: str) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(REPOSITORY), **extra}

    def __call__(self, *arguments: str | Path, **environment: str) -> Finished:
        return subprocess.run(
            self.command(*arguments),
            cwd=self.directory,
            env=self.environment(**environment),
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE,
        )

    def start(self, *arguments: str | Path, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(*arguments),
            cwd=self.directory,
            env=self.environment(**environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@pytest.fixture
def firsttouch(tmp_path: Path) -> Firsttouch:
    return Firsttouch(tmp_path)


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of an empty store for this test alone."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return store_root()


@pytest.fixture
def own_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of a user's own entries, for this test alone, with a folder of each kind."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for kind in ("experiments", "machines", "arms"):
        (users_folder() / kind).mkdir(parents=True)
    return users_folder()


@pytest.fixture(scope="session")
def native_ftbench(reporter: Reporter) -> Path:
    """The entry of this host's ftbench in the store."""
    return HOST_BENCH.obtain(reporter).parent


@pytest.fixture
def listing_cache(native_ftbench: Path, own_cache: Path) -> Path:
    """The root of a store for this test alone that has the ftbench that lists what it can."""
    shutil.copytree(native_ftbench, own_cache / "programs" / native_ftbench.name)
    return own_cache


@pytest.fixture
def configured_cache(listing_cache: Path, reporter: Reporter) -> Path:
    """The root of a store for this test alone that also has a configuration of 6.12."""
    Configuration(load_release("6.12")).give(FAKE_CONFIGURATION)
    return listing_cache


@pytest.fixture
def fake_linux(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FAKE_LINUX, tmp_path / "linux"))


@pytest.fixture(scope="session")
def reporter() -> Iterator[Reporter]:
    yield Reporter()


@pytest.fixture(scope="session")
def sources(reporter: Reporter) -> Callable[[str], KernelSource]:
    return functools.cache(lambda release: debian_source(load_release(release), reporter))


@pytest.fixture(scope="session")
def images(
    sources: Callable[[str], KernelSource], reporter: Reporter
) -> Callable[[str, bool], Path]:
    """Real kernels: built on first use, then taken from the store."""

    @functools.cache
    def obtain(release: str, changed: bool) -> Path:
        kernel = Kernel("changed" if changed else "stock")
        return KernelImage(sources(release), kernel).obtain(reporter)

    return obtain
