# SPDX-License-Identifier: GPL-2.0
"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from firsttouch.errors import UserError
from firsttouch.lab.plan import DEFAULT_RELEASE
from firsttouch.quantities import parse_size

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def add_source(parser: argparse.ArgumentParser) -> None:
    """Add --release and --source."""
    parser.add_argument(
        "--release",
        default=None,
        metavar="R",
        help=f"a kernel release that has hooks (default {DEFAULT_RELEASE})",
    )
    parser.add_argument(
        "--source",
        type=Path,
        metavar="TREE",
        help="a kernel of your own, with the hooks of the nearest release: a tree, a tarball "
        "such as linux-6.12.1.tar.xz, or Debian's linux-source package",
    )


def release_of(options: argparse.Namespace) -> str:
    """Return the release that was asked for; UserError if --source was given too."""
    if options.release and options.source:
        raise UserError("--release and --source exclude each other: a tree has its own release.")
    return str(options.release or DEFAULT_RELEASE)


def size_of(option: str, text: str | None) -> int | None:
    """Return the bytes in `text`, the value of `option`; UserError if it is not a size."""
    if text is None:
        return None
    try:
        return parse_size(text)
    except ValueError as error:
        raise UserError(f"{option}: {error}; for example 64M.") from None


def settings_of(pairs: Sequence[str]) -> dict[str, str]:
    """Return the values of ``--set PARAM=VALUE`` options by parameter; UserError without a =."""
    settings = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise UserError(f"--set {pair}: write PARAM=VALUE, such as by=ldadd.")
        settings[name] = value
    return settings
