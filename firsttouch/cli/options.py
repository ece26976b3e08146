# SPDX-License-Identifier: GPL-2.0
"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from firsttouch.catalog.architectures import (
    DEFAULT_ARCHITECTURE,
    architecture_names,
    load_architecture,
)
from firsttouch.catalog.arms import Arm, arm_names, load_setting
from firsttouch.catalog.machines import DEFAULT_MACHINE
from firsttouch.errors import UserError
from firsttouch.lab.plan import DEFAULT_RELEASE, HERE, SLURM, TASK, Request
from firsttouch.progress import Reporter
from firsttouch.quantities import parse_size

_LIMIT = re.compile(r"(?P<name>\w+)>\+?(?P<percent>\d+(?:\.\d+)?)%")
# What needs counts, other guests, or many at once.
_NOT_TIMED = (
    "machine", "layouts", "on", "jobs", "matrix", "setting", "reply", "bisect", "fail_if",
)  # fmt: skip


def option(
    parser: argparse.ArgumentParser,
    spec: str,
    text: str,
    *,
    default: object = None,
    kind: Callable[[str], object] = str,
    choices: Sequence[str] | None = None,
    dest: str | None = None,
) -> None:
    """Add an option: "--json" is a flag, "--size BYTES" has a value, "--arm A..." many of them."""
    name, _, metavar = spec.partition(" ")
    dest = dest or name.removeprefix("--").replace("-", "_")
    if not metavar and not choices:
        parser.add_argument(name, action="store_true", dest=dest, help=text)
        return
    several = metavar.endswith("...")
    parser.add_argument(
        name, dest=dest, help=text, type=kind, choices=choices,
        action="append" if several else "store",
        default=[] if several else default, metavar=metavar.removesuffix("...") or None,
    )  # fmt: skip


def add_source(parser: argparse.ArgumentParser, *, several: bool = False) -> None:
    text = f"a kernel release with hooks (default {DEFAULT_RELEASE})"
    option(parser, "--release R...", f"{text}{'; may be repeated' * several}")
    option(
        parser, "--source TREE",
        "your own kernel source, patched with the hooks of the closest release", kind=Path,
    )  # fmt: skip


def add_architecture(parser: argparse.ArgumentParser) -> None:
    names = ", ".join(architecture_names())
    text = f"one of {names} (default: %(default)s)"
    option(parser, "--arch NAME", text, default=DEFAULT_ARCHITECTURE)


def add_out(parser: argparse.ArgumentParser, out: str) -> None:
    option(parser, "--out DIR", f"output directory (default {out}/)", default=Path(out), kind=Path)


def add_selection(parser: argparse.ArgumentParser, out: str, *, arms: bool = True) -> None:
    """Add the options that select the cells of a run, and where their results go.

    Without `arms`, the command has another way to say which arms run.
    """
    add_source(parser, several=True)
    option(
        parser, "--machine M...",
        f"a machine of machines/ (default {DEFAULT_MACHINE}); may be repeated",
    )  # fmt: skip
    option(
        parser, "--experiment E...",
        "an experiment of experiments/ (default: all of the default plan)",
    )  # fmt: skip
    if arms:
        names = ", ".join(arm_names())
        option(parser, "--arm A...", f"one of {names} (default: the experiment's arms)")
    option(parser, "--size BYTES", "bytes to map; K, M and G are accepted")
    option(
        parser, "--set PARAM=VALUE...",
        "run only the cells with this value of a parameter; may be repeated for more values",
        dest="settings",
    )  # fmt: skip
    option(parser, "--setting S...", "run in this setting, such as kpti-off; may be repeated")
    option(
        parser, "--jobs N",
        "number of parallel guests (default: as many as CPUs and memory allow)", kind=int,
    )  # fmt: skip
    add_out(parser, out)
    parser.set_defaults(at_interrupt="finished cells are kept; run the same command to resume")


def request_of(
    options: argparse.Namespace,
    *,
    quick: bool = False,
    profile: bool = False,
    tried: tuple[Arm, ...] = (),
    layouts: tuple[int, ...] = (),
) -> Request:
    """Return the request that the options of `add_selection` make; UserError for a wrong value."""
    return Request(
        release=release_of(options),
        source=options.source,
        machines=tuple(options.machine),
        experiments=tuple(options.experiment),
        arms=() if tried else tuple(getattr(options, "arm", ())),
        tried=tried,
        size=size_of("--size", options.size),
        settings=settings_of(options.settings),
        around=tuple(map(load_setting, dict.fromkeys(options.setting or [""]))),
        layouts=layouts,
        jobs=options.jobs,
        quick=quick,
        profile=profile,
        out=options.out,
        architecture=load_architecture(getattr(options, "arch", DEFAULT_ARCHITECTURE)).name,
        argv=tuple(getattr(options, "argv", ())),
    )


def release_of(options: argparse.Namespace) -> str:
    if options.release and options.source:
        raise UserError("--release and --source exclude each other: a tree has its own release.")
    if len(options.release) > 1:
        raise UserError("--release is given twice: this command takes one.")
    return str([*options.release, DEFAULT_RELEASE][0])


Run = Callable[[argparse.Namespace, Reporter], int]


def by_release(run: Run) -> Run:
    """Return a command that runs for each --release in turn, each with a folder in --out."""

    def every(options: argparse.Namespace, reporter: Reporter) -> int:
        releases, out = options.release, options.out
        if getattr(options, "on", HERE).startswith(TASK):
            # The front end has added the one of the guests.
            releases = options.release = releases[-1:]
        if len(releases) < 2 or options.source:
            return run(options, reporter)
        status = 0
        for options.release in [[name] for name in dict.fromkeys(releases)]:
            options.out = out / options.release[0]
            status = max(status, run(options, reporter))
        return status

    return every


def check_time(options: argparse.Namespace) -> None:
    """Raise UserError for --boots and --arch without --time, and for what --time cannot do."""
    if not options.time:
        if options.boots is not None:
            raise UserError("--boots is for times: give --time, too.")
        if options.arch != DEFAULT_ARCHITECTURE:
            raise UserError(f"--arch {options.arch} is for times: give --time, too.")
        return
    for name in _NOT_TIMED:
        if getattr(options, name, None) not in (None, False, [], HERE):
            raise UserError(
                f"--time runs guests on this host, in turn: leave out --{name.replace('_', '-')}."
            )


def add_limits(parser: argparse.ArgumentParser) -> None:
    option(
        parser, "--fail-if LIMIT...",
        "exit with status 1 if a count grows by more, such as 'instructions_kernel>+0.5%%'",
    )  # fmt: skip


def limit_of(text: str) -> tuple[str, float]:
    match = _LIMIT.fullmatch(text.replace(" ", ""))
    if not match:
        raise UserError(f"--fail-if {text}: write a count and a limit: 'instructions>+0.5%'.")
    return match["name"], float(match["percent"])


def size_of(option: str, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return parse_size(text)
    except ValueError as error:
        raise UserError(f"{option}: {error}; for example 64M.") from None


def settings_of(pairs: Sequence[str]) -> dict[str, tuple[str, ...]]:
    settings: dict[str, tuple[str, ...]] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise UserError(f"--set {pair}: write PARAM=VALUE, such as by=ldadd.")
        settings[name] = (*settings.get(name, ()), value)
    return settings


def where_of(text: str) -> str:
    name, _, rest = text.partition(":")
    if text in (HERE, SLURM) or (name in (SLURM, TASK) and rest):
        return text
    raise UserError(f"--on {text}: write {HERE}, {SLURM} or {SLURM}:PARTITION.")
