# SPDX-License-Identifier: GPL-2.0
"""`firsttouch completion`: a script for a shell, which asks this program for the words."""

from __future__ import annotations

import argparse

import argcomplete
from argcomplete.completers import FilesCompleter
from argcomplete.shell_integration import shellcode

from firsttouch.catalog.arms import arm_names
from firsttouch.catalog.experiments import experiment_names
from firsttouch.catalog.machines import machine_names
from firsttouch.catalog.releases import release_names
from firsttouch.progress import Reporter

_SHELLS = ("bash", "zsh", "fish")
_EXAMPLES = """examples:
  firsttouch completion bash > ~/.local/share/bash-completion/completions/firsttouch
  firsttouch completion zsh > ~/.zfunc/_firsttouch        with ~/.zfunc in $fpath
  firsttouch completion fish > ~/.config/fish/completions/firsttouch.fish
"""
# By option. They are no `choices`: the error of a command about an unknown name says more.
_NAMES = {
    "machine": machine_names,
    "experiment": experiment_names,
    "arm": arm_names,
    "guest": arm_names,
    "release": release_names,
}


def add_options(completion: argparse.ArgumentParser) -> None:
    completion.epilog = _EXAMPLES
    completion.formatter_class = argparse.RawDescriptionHelpFormatter
    completion.add_argument("shell", choices=_SHELLS, metavar="SHELL", help=", ".join(_SHELLS))
    completion.set_defaults(run=_run)


def _run(options: argparse.Namespace, _reporter: Reporter) -> int:
    print(shellcode(["firsttouch"], shell=options.shell))
    return 0


class _Names(FilesCompleter):
    def __call__(self, prefix: str, **about: object) -> list[str]:
        names = _NAMES.get(getattr(about["action"], "dest", ""))
        return names() if names else super().__call__(prefix, **about)


def complete(parser: argparse.ArgumentParser) -> None:
    """Print the words that can stand at the cursor, and exit; called by a shell's script."""
    argcomplete.autocomplete(parser, default_completer=_Names())
