# SPDX-License-Identifier: GPL-2.0
"""The kernel's own mm and arm64 selftests: what passes on a stock kernel passes on a changed one.

Which are run and which are not, and why, is data: kernel_suites.toml. The
kernels are the server's, which have what most of the tests look for.
"""

import functools
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import pytest

from firsttouch.building.source import KernelSource
from firsttouch.catalog.kernels import release_names
from firsttouch.catalog.machines import load_machine
from firsttouch.progress import Reporter
from firsttouch.vm.supervision import splats_in
from tests.linux.conftest import AddScript, MakeGuest
from tests.linux.outcomes import Outcome, Outcomes
from tests.support.ktap import Case, parse, show
from tests.support.selftests import build_kernel_suites

pytestmark = [pytest.mark.kernel, pytest.mark.regress]

_DATA = tomllib.loads((Path(__file__).parent / "kernel_suites.toml").read_text())
_LEFT_OUT: dict[str, str] = {
    f"{suite}/{name}": reason
    for suite in _DATA
    for name, reason in _DATA[suite]["left_out"].items()
}
# Commands that pass no test on a stock kernel, and what they lack there.
_FAILS_ON_STOCK: dict[str, str] = _DATA["mm"]["fails_on_stock"]
_KERNEL = "server"
# As many huge pages of the usual size as the suites' settings file asks for, and
# some of the others; 1 GiB is too much for guests of 4. The disk for swap has 512 MiB.
_BOOT = (
    *("hugepagesz=64K", "hugepages=64", "hugepagesz=32M", "hugepages=8"),
    *("hugepagesz=2M", "hugepages=128"),
    "brd.rd_size=524288",
)
_PREPARE = "mkswap /dev/ram0\nswapon /dev/ram0\n"
# By ksft's convention, and by the shell's.
_SKIPPED, _CANNOT_RUN = 4, 127


@pytest.fixture(scope="session")
def suites(sources: Callable[[str], KernelSource], reporter: Reporter) -> Callable[[str], Path]:
    """The programs of a release; there are many, so they are listed once."""
    return functools.cache(lambda release: build_kernel_suites(sources(release), reporter))


@pytest.fixture
def programs(suites: Callable[[str], Path], release: str) -> Path:
    return suites(release)


@pytest.mark.parametrize("release", release_names())
def test_every_program_is_run_or_left_out_with_a_reason(programs: Path) -> None:
    built = {
        str(path.relative_to(programs))
        for suite in _DATA
        for path in (programs / suite).rglob("*")
        if path.is_file()
    }
    run = {f"mm/{command.split()[0]}" for command in _DATA["mm"]["commands"]}
    folders = tuple(f"arm64/{folder}/" for folder in _DATA["arm64"]["folders"])
    unknown = {name for name in built - run - _LEFT_OUT.keys() if not name.startswith(folders)}
    assert len(built) > 80
    assert not unknown


def _cases(commands: list[str], outcome: Outcome) -> dict[tuple[str, int], Case]:
    """Return the tests of some programs by program and place; the exits are tests at place 0.

    What some print as a test's name is what they found, and no name.
    """
    cases = {}
    for command, done in zip(commands, outcome.commands, strict=True):
        assert done.status != _CANNOT_RUN, f"{command} cannot be run"
        ended = {0: "passed", _SKIPPED: "skipped"}.get(done.status, "failed")
        exit_case = Case("exit", ended, f"status {done.status}")
        for place, case in enumerate([exit_case, *parse(done.lines)]):
            cases[command, place] = replace(case, name=f"{command}: {case.name}")
    return cases


def _compare(commands: list[str], stock: Outcome, on: Outcome) -> None:
    """Fail if a test passes on the stock kernel alone, or only the changed one complains."""
    before, after = _cases(commands, stock), _cases(commands, on)
    show([*after.values()])
    passed = {place for place, case in after.items() if case.outcome == "passed"}
    broken = all(case.outcome == "failed" for case in before.values())
    expected = set(commands) <= _FAILS_ON_STOCK.keys()
    assert expected or not broken, "nothing passed on stock: guest or program is broken"
    worse = [case.name for place, case in before.items() if case.outcome == "passed"
             and place not in passed]  # fmt: skip
    assert not worse
    assert len(splats_in(on.log)) <= len(splats_in(stock.log)), splats_in(on.log)


class RunBoth(Protocol):
    """Runs commands in a stock and in a changed guest; all `files` lie in its /."""

    def __call__(
        self, commands: list[str], files: list[Path], **more: Any
    ) -> tuple[Outcome, Outcome]: ...


@pytest.fixture
def run_both(
    make_guest: MakeGuest, add_script: AddScript, outcomes: Outcomes, release: str
) -> RunBoth:
    def run(commands: list[str], files: list[Path], **more: Any) -> tuple[Outcome, Outcome]:
        stock, on = (_run(arm, commands, files, more) for arm in ("stock", "on"))
        return stock, on

    def _run(arm: str, commands: list[str], files: list[Path], more: dict[str, Any]) -> Outcome:
        boot = *_BOOT, *_DATA["mm"]["boot"].get(commands[0], ())
        guest = add_script(make_guest(release, _KERNEL, *boot, arm=arm), _PREPARE)
        guest = replace(
            guest,
            commands=(*guest.commands, *(f"/{command}" for command in commands)),
            files={**guest.files, **{f"/{file.name}": file for file in files}},
            **more,
        )
        outcome = outcomes.of(guest, f"{release} {arm} {commands[0]}", splats=True)
        prepared, *done = outcome.commands
        assert prepared.status == 0, prepared.lines
        return replace(outcome, commands=tuple(done))

    return run


@pytest.mark.parametrize("command", _DATA["mm"]["commands"])
@pytest.mark.parametrize("release", release_names())
def test_mm(run_both: RunBoth, programs: Path, release: str, command: str) -> None:
    program = programs / "mm" / command.split()[0]
    if not program.exists():
        pytest.skip(f"{release} has no {program.name}")
    cpus = _DATA["mm"]["cpus"].get(command, 1)
    timing = "identical" if cpus == 1 else "parallel"
    both = run_both([command], [program], nodes=2, cpus=cpus, timing=timing)
    _compare([command], *both)


@pytest.mark.parametrize("folder", _DATA["arm64"]["folders"])
@pytest.mark.parametrize("release", release_names())
def test_arm64(run_both: RunBoth, programs: Path, release: str, folder: str) -> None:
    files = sorted((programs / "arm64" / folder).glob("*"))
    if not files:
        pytest.skip(f"{release} has no arm64/{folder}")
    commands = [file.name for file in files if f"arm64/{folder}/{file.name}" not in _LEFT_OUT]
    tagged = replace(load_machine("neoverse-n1"), cpu="max", midr=None)
    stock, on = run_both(commands, files, machine=tagged, board=("mte=on",))
    _compare(commands, stock, on)
