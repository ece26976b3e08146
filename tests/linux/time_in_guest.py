# SPDX-License-Identifier: GPL-2.0
"""`firsttouch lab --time` on a host without compilers: python3 -m tests.linux.time_in_guest BOOTS.

All is the command's own but for what it builds: kernels and programs are files of
the folder PARTS, from another host.
"""

import argparse
import sys
from pathlib import Path
from unittest import mock

from firsttouch.building.source import KernelSource
from firsttouch.catalog.arms import Kernel
from firsttouch.catalog.contract import parse_contract
from firsttouch.catalog.releases import Release, load_release
from firsttouch.cli.timed import run_times
from firsttouch.errors import FirsttouchError
from firsttouch.lab import timed
from firsttouch.lab.guests import Part, Parts, parts_of
from firsttouch.lab.plan import Plan, Request
from firsttouch.progress import Reporter
from tests.support.sources import fake_source

PARTS = Path("/tmp/parts")


def name_of(part: Part) -> str:
    """Return the file of a kernel or a program in `PARTS`."""
    return part.kind if isinstance(part, Kernel) else part.title.replace(" ", "-")


def _parts(source: KernelSource, plan: Plan, _logs: Path, reporter: Reporter) -> Parts:
    parts = parts_of(plan, plan.cells)
    return Parts(source, {part: PARTS / name_of(part) for part in parts}, reporter)


def _source(request: Request, release: Release, _reporter: Reporter) -> KernelSource:
    return fake_source(release=release)


def main() -> int:
    """Run the command in its quick form, with small mappings."""
    options = argparse.Namespace(
        join=False, dry_run=False, json=False, table=True, boots=int(sys.argv[1])
    )
    request = Request(
        release=load_release("6.12").name,
        experiments=("populate", "read-fault"),
        settings={"by": ("store", "ldadd")},
        size=4 << 20,
        quick=True,
        out=Path("/tmp/out"),
    )
    contract = parse_contract((PARTS / "contract.json").read_text())
    try:
        with (
            mock.patch.object(timed, "build_parts", _parts),
            mock.patch.object(timed, "source_of", _source),
        ):
            return run_times(options, request, contract, Reporter())
    except FirsttouchError as error:
        print("\n".join([f"firsttouch: {error}", *error.detail]))
        return error.exit_status


if __name__ == "__main__":
    sys.exit(main())
