# SPDX-License-Identifier: GPL-2.0
"""Which worker runs which test: tests that share something expensive run on one.

pytest-xdist's own marks for that (--dist=loadgroup) do nothing with the
pytest that is locked: 3.8 writes them into a field that 9.2 does not read.
"""

import re

from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

# Files whose tests share a module's fixture, as a guest, a tree, an installed
# package, the results behind the documents; or the machine's hugeTLB pool.
# Where a test's parameters begin with a release, they do so by release.
TOGETHER = (
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
    """Every test goes to a free worker by itself, except those in `TOGETHER`."""

    def _split_scope(self, nodeid: str) -> str:
        return scope(nodeid)


def scope(nodeid: str) -> str:
    """Return what a test has in common with those that run on the same worker."""
    file = nodeid.split("::")[0]
    if file not in TOGETHER:
        return nodeid
    release = _RELEASE.search(nodeid)
    return f"{file} {release[1] if release else ''}"
