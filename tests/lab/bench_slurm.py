#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""How long two nodes of a real Slurm take for the default plan of every machine.

python -m tests.lab.bench_slurm OUT RELEASE...: starts the cluster of
tests/support/slurm_cluster.py, has it measure what docs/evidence/tables.toml
asks of the set machines-RELEASE, and leaves the results in OUT/RELEASE. What
the store has is not measured again. Prints who ran how many guests, the
minutes, and whether the results have the bytes that docs/evidence holds. Its
status is not 0 if a run failed or the bytes differ. An interrupted run goes on
with the same command. Needs root and `./setup regress`.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import subprocess
import sys
import time
from pathlib import Path

from docs.evidence.draw.declared import ResultSet, load_evidence
from firsttouch.catalog.releases import release_names
from tests.support.slurm_cluster import NODES, SlurmCluster, slurm_cluster


def measure(wanted: ResultSet, out: Path, cluster: SlurmCluster) -> bool:
    """Run the set's plan on the cluster; return whether that succeeded."""
    command = [sys.executable, "-m", "firsttouch", *wanted.arguments(), "--out", str(out)]
    command += ["--on", "slurm:cells", "--workers", str(len(NODES)), "--audit", "1%"]
    return not subprocess.run(command, env=cluster.environment).returncode


def as_in_evidence(wanted: ResultSet, out: Path) -> bool:
    """Return whether the results are those of the evidence, in any order."""
    with lzma.open(wanted.file()) as packed, (out / "results.jsonl").open("rb") as results:
        return sorted(packed) == sorted(results)


def main() -> int:
    """Run the benchmark and print its figures."""
    parser = argparse.ArgumentParser(description="Run the default plan of every machine on Slurm.")
    parser.add_argument("out", metavar="OUT", type=Path)
    parser.add_argument("releases", metavar="RELEASE", nargs="+", choices=release_names())
    given = parser.parse_args()
    sets = [load_evidence().sets[f"machines-{release}"] for release in given.releases]
    good = True
    with slurm_cluster() as cluster:
        for wanted in sets:
            folder = given.out / wanted.release
            began = time.monotonic()
            if not measure(wanted, folder, cluster):
                return 1
            print(f"\n{wanted.name}: {(time.monotonic() - began) / 60:.1f} minutes")
            ran = json.loads((folder / "hosts.json").read_text())
            for host, work in ran["hosts"].items():
                print(f"{host}: {work['guests']:,} guests, {work['cells']:,} cells")
            print(f"audited: {len(ran['audited']):,} guests")
            same = as_in_evidence(wanted, folder)
            print(f"results: {'as' if same else 'not as'} in {os.path.relpath(wanted.file())}")
            good = good and same
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
