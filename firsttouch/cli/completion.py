# SPDX-License-Identifier: GPL-2.0
"""`firsttouch completion`: a script that completes the command line in a shell."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

import shtab

from firsttouch.catalog.arms import arm_names
from firsttouch.catalog.experiment_files import experiment_names
from firsttouch.catalog.machines import machine_names
from firsttouch.catalog.releases import release_names
from firsttouch.cli.main import full_parser
from firsttouch.progress import Reporter

_SHELLS = ("bash", "zsh", "fish")
_EXAMPLES = """examples:
  firsttouch completion bash > ~/.local/share/bash-completion/completions/firsttouch
  firsttouch completion zsh > ~/.zfunc/_firsttouch        with ~/.zfunc in $fpath
  firsttouch completion fish > ~/.config/fish/completions/firsttouch.fish
"""


def add_options(completion: argparse.ArgumentParser) -> None:
    """Add the options of `firsttouch completion`."""
    completion.epilog = _EXAMPLES
    completion.formatter_class = argparse.RawDescriptionHelpFormatter
    completion.add_argument("shell", choices=_SHELLS, metavar="SHELL", help=", ".join(_SHELLS))
    completion.set_defaults(run=_run)


def _run(options: argparse.Namespace, _reporter: Reporter) -> int:
    """Print the script for all commands."""
    parser = full_parser()
    _give_values(parser, {
        "machine": machine_names(),
        "experiment": experiment_names(),
        "arm": arm_names(),
        "guest": arm_names(),
        "release": release_names(),
    })  # fmt: skip
    print(shtab.complete(parser, options.shell))
    return 0


def _give_values(parser: argparse.ArgumentParser, names: dict[str, list[str]]) -> None:
    """Give options the names that they can have, in a parser and in those of its commands.

    This is only for completion: the error of a command about an unknown name
    says more than that of argparse.
    """
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            commands: Iterable[argparse.ArgumentParser] = action.choices.values()
            for command in commands:
                _give_values(command, names)
        elif action.dest in names:
            action.choices = names[action.dest]
        elif action.type is Path:
            vars(action)["complete"] = shtab.FILE
