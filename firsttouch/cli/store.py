# SPDX-License-Identifier: GPL-2.0
"""`firsttouch store`: list what was built and measured, or remove some of it."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable

from firsttouch.building.store import OUTCOMES, Item, items, prune, store_root
from firsttouch.cli.options import size_of
from firsttouch.errors import UserError
from firsttouch.progress import Reporter


def add_options(store: argparse.ArgumentParser) -> None:
    actions = store.add_subparsers(required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="print the entries: kind, size, last use, name")
    listing.set_defaults(run=_list)
    pruning = actions.add_parser("prune", help="remove the least recently used entries")
    pruning.add_argument(
        "--keep",
        required=True,
        metavar="BYTES",
        help="the size to reduce the store to; K, M and G are accepted",
    )
    pruning.set_defaults(run=_prune)


def _list(_options: argparse.Namespace, _reporter: Reporter) -> int:
    listed = items()
    print(f"{store_root()}: {_size(sum(item.size for item in listed))}")
    _print(listed)
    return 0


def _prune(options: argparse.Namespace, _reporter: Reporter) -> int:
    # parse_size() refuses 0, but here it means to keep nothing.
    keep = 0 if options.keep == "0" else size_of("--keep", options.keep)
    if keep is None:
        raise UserError("--keep is missing: give how many bytes may stay, such as 20G.")
    removed = prune(keep)
    _print(removed)
    freed, left = sum(item.size for item in removed), sum(item.size for item in items())
    print(f"removed {_size(freed)}; {_size(left)} stay below {store_root()}")
    return 0


def _print(listed: Iterable[Item]) -> None:
    """Print a line for each entry, and one line for all outcomes, since there are very many."""
    outcomes = [item for item in listed if item.kind == OUTCOMES]
    for item in listed:
        if item.kind != OUTCOMES:
            _line(item.kind, item.size, item.used, item.title)
    if outcomes:
        size, used = sum(item.size for item in outcomes), max(item.used for item in outcomes)
        _line(OUTCOMES, size, used, f"outcomes of {len(outcomes):,} guests")


def _line(kind: str, size: int, used: float, title: str) -> None:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(used))
    print(f"{kind:10}{_size(size):>11}  {when}  {title}")


def _size(size: int) -> str:
    """Return a size in the smallest unit that leaves at most four digits before the point."""
    value, unit = float(size), "B"
    for larger in ("KiB", "MiB", "GiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:,.0f} {unit}" if unit == "B" else f"{value:,.1f} {unit}"
