# SPDX-License-Identifier: GPL-2.0
"""Options as text: a line each, with the types of their values, and those that commands share."""

from __future__ import annotations

import argparse
import functools
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from firsttouch.catalog.arms import Arm, load_setting
from firsttouch.catalog.experiments import load_experiment
from firsttouch.catalog.kernels import DEFAULT_ARCHITECTURE, load_architecture, release_names
from firsttouch.catalog.machines import DEFAULT_MACHINE
from firsttouch.cli import add_command
from firsttouch.errors import UserError
from firsttouch.files import EXPERIMENTS, FOLDERS
from firsttouch.lab.cells import parse_layouts
from firsttouch.lab.plan import DEFAULT_RELEASE, HERE, TASK, Request
from firsttouch.progress import Reporter
from firsttouch.quantities import format_size, parse_size
from firsttouch.tables import names_in

Run = Callable[[argparse.Namespace, Reporter], int]

# Bytes with which Debian's kernel boots.
_LEAST = 128 << 20
_DEFAULT = re.compile(r"\(default ([^\s)]+)\)$")
_RANGE = re.compile(r"(\d+)-(\d+)")
_LIMIT = re.compile(r"(?P<name>\w+)>\+?(?P<percent>\d+(?:\.\d+)?)%")
SOURCE = f"""
--release R...        a kernel release of linux/hooks/ (default: {DEFAULT_RELEASE})
--source TREE         your own kernel source, patched with the hooks of the closest release
"""
ARM = "--arm NAME...  an arm of arms/ (default: the experiment's arms)"
# What selects the cells of a run.
SELECTION = f"""{SOURCE}
--machine M...        a machine of machines/ (default: {DEFAULT_MACHINE})
--experiment E...     an experiment of experiments/ (default: all of the default plan)
--size BYTES          bytes to map; K, M and G are accepted
--set PARAM=VALUE...  run only the cells with this value of a parameter
--setting S...        run in this setting, such as kpti-off
--jobs N              number of parallel guests (default: as many as CPUs and memory allow)
"""
# How they are measured, and what is printed.
FORM = f"""
--quick         get a first answer from smaller sizes and fewer cells
--time          measure times instead of counts: boot stock, stock again and each other arm in turn
                as KVM guests of this host
--boots 1-1000  with --time: boots of each arm (default: 20, with --quick 8)
--arch NAME     with --time: the architecture of this host (default {DEFAULT_ARCHITECTURE})
--table         print every row
--json          print the answer as JSON
--dry-run       print the plan and run nothing
"""
LIMITS = """
--fail-if LIMIT...  exit with status 1 if a count grows by more, such as 'instructions_kernel>+0.5%'
"""


def declare(parser: argparse.ArgumentParser, text: str, run: Run, at_interrupt: str = "") -> None:
    """Add the options and arguments of `text`, each a line as --help prints it; `run` gets them.

    Indented lines continue one. ``--size BYTES`` has a value, of the type that its name has in
    `_value`, ``--arm NAME...`` may be repeated, ``--json`` is a flag. A text that ends in
    ``(default X)`` sets the default.
    """
    parser.set_defaults(run=run, at_interrupt=at_interrupt, parser=parser)
    for line in filter(None, re.sub(r"\n {2,}", " ", text).splitlines()):
        spec, words = re.split(r" {2,}", line, maxsplit=1)
        name, _, metavar = spec.partition(" ")
        is_option = name.startswith("--")
        if is_option and not metavar:
            parser.add_argument(name, action="store_true", help=words)
            continue
        default = _DEFAULT.search(words)
        several = spec.endswith("...")
        metavar = (metavar or name).removesuffix("...")
        added = parser.add_argument(
            name if is_option else metavar.lower(),
            action="append" if several and is_option else "store",
            nargs="*" if several and not is_option else None,
            metavar="NAME" if len(metavar) > 60 else None if "{" in metavar else metavar,
            choices=metavar[1:-1].split(",") if "{" in metavar else None,
            type=functools.partial(_value, name, metavar),
            default=[] if several else default and default[1],
            help=words.replace("%", "%%") + "; may be repeated" * (several and is_option),
        )
        if added.dest in {*FOLDERS, "release", "set"}:
            vars(added)["completer"] = functools.partial(_completed, added.dest)


def _value(name: str, metavar: str, text: str) -> object:
    """Return the value of an option as its metavar says; UserError if it is none."""
    between = _RANGE.fullmatch(metavar)
    least, most = map(int, between.groups()) if between else (1, 10**9)
    match "N" if between else metavar:
        case "N" if text.isdecimal() and least <= int(text) <= most:
            return int(text)
        case "N":
            numbers = f"{least} to {most}" if between else f"at least {least}"
            raise UserError(f"{name} {text}: give {numbers}.")
        case "BYTES" | "RAM":
            try:
                size = parse_size(text)
            except ValueError as error:
                raise UserError(f"{name}: {error}; for example 64M.") from None
            if metavar == "RAM" and size < _LEAST:
                raise UserError(f"{name} {text}: a guest needs {format_size(_LEAST)} to boot.")
            return size
        case "LIMIT":
            if not (limit := _LIMIT.fullmatch(text.replace(" ", ""))):
                raise UserError(f"{name} {text}: write a count and a limit: 'instructions>+0.5%'.")
            return limit["name"], float(limit["percent"])
        case "LAYOUTS":
            return parse_layouts(text)
        case "FILE" | "FOLDER" | "PATH":
            if not Path(text).exists():
                raise UserError(f"{name} {text} does not exist: give one that does.")
            if metavar != "PATH" and Path(text).is_dir() != (metavar == "FOLDER"):
                raise UserError(f"{name} {text} is no {metavar.lower()}: give one.")
            return Path(text)
        case "A" | "B" | "DIR" | "TREE":
            return Path(text)
    return text


def _completed(option: str, parsed_args: argparse.Namespace, **_: object) -> Collection[str]:
    """Return the values of an option, for completion in shells."""
    if option in FOLDERS:
        return names_in(FOLDERS[option])
    names = getattr(parsed_args, "experiment", None) or names_in(EXPERIMENTS)
    experiments = map(load_experiment, names)
    if option == "release":
        return release_names(stock=True)
    sets = [item for each in experiments for item in each.parameters.items()]
    return [
        f"{name}={value}" for name, values in sets for value in map(str, values) if value[0] != "@"
    ]


def add_actions(
    command: argparse.ArgumentParser, actions: Mapping[str, tuple[Run, str, str]]
) -> None:
    """Add what a command does, by name: its function, its line of --help, and its options."""
    parsers = command.add_subparsers(required=True, metavar="ACTION")
    for name, (run, line, text) in actions.items():
        declare(add_command(parsers, name, line), text, run)


def request_of(
    options: argparse.Namespace, *, profile: bool = False, tried: tuple[Arm, ...] = ()
) -> Request:
    """Return the request that the options of `SELECTION` make; UserError for a wrong value."""
    return Request(
        release=release_of(options),
        source=options.source,
        machines=tuple(options.machine),
        experiments=tuple(options.experiment),
        arms=() if tried else tuple(getattr(options, "arm", None) or ()),
        tried=tried,
        size=options.size,
        settings=settings_of(options.set),
        around=tuple(map(load_setting, dict.fromkeys(options.setting or [""]))),
        layouts=getattr(options, "layouts", None) or (),
        jobs=options.jobs,
        quick=getattr(options, "quick", False),
        profile=profile,
        out=options.out,
        on=getattr(options, "on", None) or HERE,
        architecture=load_architecture(getattr(options, "arch", DEFAULT_ARCHITECTURE)).name,
        argv=tuple(getattr(options, "argv", ())),
    )


def exclude(options: argparse.Namespace, *names: str) -> None:
    """Raise UserError if more than one of these options is given."""
    given = [f"--{name.replace('_', '-')}" for name in names if getattr(options, name, None)]
    if len(given) > 1:
        raise UserError(f"{' and '.join(given)} exclude each other: give one of them.")


def release_of(options: argparse.Namespace) -> str:
    exclude(options, "release", "source")
    if len(options.release) > 1:
        raise UserError("--release is given twice: this command takes one.")
    return str([*options.release, DEFAULT_RELEASE][0])


def by_release(run: Run) -> Run:
    """Return a command that runs for each --release in turn, each with a folder in --out."""

    def every(options: argparse.Namespace, reporter: Reporter) -> int:
        if TASK in os.environ:
            # The front end has added the one of the guests.
            options.release = options.release[-1:]
        if len(options.release) < 2 or options.source:
            return run(options, reporter)
        status, out = 0, options.out
        for name in dict.fromkeys(options.release):
            options.release, options.out = [name], out / name
            status = max(status, run(options, reporter))
        return status

    return every


def check_time(options: argparse.Namespace) -> None:
    """Raise UserError for options that need --time, or that exclude it."""
    if not options.time and (options.boots or options.arch != DEFAULT_ARCHITECTURE):
        raise UserError("--boots and --arch are for times: give --time, too.")
    # What needs counts, other guests, or many at once.
    for name in ("machine", "layouts", "on", "jobs", "matrix", "setting", "reply", "bisect",
                 "fail_if"):  # fmt: skip
        exclude(options, "time", name)


def settings_of(pairs: Sequence[str]) -> dict[str, tuple[str, ...]]:
    settings: dict[str, tuple[str, ...]] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise UserError(f"--set {pair}: write PARAM=VALUE, such as by=ldadd.")
        settings[name] = (*settings.get(name, ()), value)
    return settings
