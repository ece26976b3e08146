# SPDX-License-Identifier: GPL-2.0
"""Debian's own binary kernel as the oracle of the lab's kernels."""

import pytest

from firsttouch.analysis.dataset import read_dataset
from tests.conftest import Firsttouch
from tests.support.kernels import releases_with_stock

pytestmark = pytest.mark.kernel

# Per cent by which a count may differ. Source and configuration of a fault's path are the
# same; of 7.3, the compiler is another: Debian's gcc 14, and the lab's that of the host.
_APART = {"6.12": 2.0, "7.3": 2.0}
# What the page allocator's lists hold at the start is up to 500,000 instructions: 1 % of these.
_SIZE = "64M"


@pytest.mark.parametrize("by", ["store", "ldadd", "load-store", None])
@pytest.mark.parametrize("release", releases_with_stock())
def test_the_labs_kernel_counts_what_debians_counts(
    firsttouch: Firsttouch, release: str, by: str | None
) -> None:
    """The floor of a store, the double fault, and the read fault."""
    what = ["populate", "--set", "page=4k", "--set", f"by={by}"] if by else ["read-fault"]
    done = firsttouch(
        "lab", "--release", release, "--machine", "neoverse-n1", "--arm", "stock",
        "--arm", "debian", "--size", _SIZE, "--experiment", *what,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (case,) = read_dataset(firsttouch.directory / "out").cases
    for metric in ("page_faults", "instructions_kernel", "tlbi", "dsb", "isb"):
        if by is None and metric == "isb":
            continue
        ours, theirs = case.value("stock", metric), case.value("debian", metric)
        assert ours is not None and theirs is not None, metric
        if metric in ("page_faults", "tlbi"):
            assert ours == theirs, metric
        # A timer tick more or less is some hundred instructions and a few barriers.
        assert abs(ours - theirs) <= theirs * _APART[release] / 100 + 500, metric
