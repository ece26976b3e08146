# SPDX-License-Identifier: GPL-2.0
"""The suites can fail: each mistake of tests/linux/mistakes is found by the test named here.

One kernel has all of them; a guest is booted with the feature alone in which
the mistake is that it looks for.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from firsttouch.catalog.arms import ARMS
from firsttouch.vm.guest import Guest
from firsttouch.build.images import KernelImage
from tests.support.ktap import parse
from firsttouch.catalog.machines import load_machine
from firsttouch.build.programs import build_program, build_selftests
from firsttouch.progress import Reporter
from firsttouch.build.sources import KernelSource

pytestmark = [pytest.mark.kernel, pytest.mark.regress]

_MISTAKES = {path.stem: path for path in (Path(__file__).parent / "mistakes").glob("*.patch")}
# The arm, the suite, and what tests of it that find the mistake are called.
_FOUND_BY = {
    "forgotten-color": ("color", "zero_page_mapping_test", r"\d+ consecutive pages are zero pages"),
    "exclusives-in-shared-files": (
        "intent",
        "write_intent_matrix_test",
        r"(ldxr/stxr|ldaxrb/stlxrb|ldxp/stxp|ldxr alone) on shared .*, rw",
    ),
    "flags-kept-across-retry": (
        "intent",
        "write_intent_userfaultfd_test",
        r"(ldadd|stadd|ldsetalb|swp|cas.*): read-only before the second try",
    ),
}


def test_each_mistake_has_its_test() -> None:
    assert _FOUND_BY.keys() == _MISTAKES.keys()


@pytest.mark.parametrize("mistake", _FOUND_BY)
def test_is_found(
    sources: Callable[[str], KernelSource], reporter: Reporter, tmp_path: Path, mistake: str
) -> None:
    source = sources("6.12")
    arm, suite, name = _FOUND_BY[mistake]
    image = KernelImage(source, changed=True, mistakes=tuple(sorted(_MISTAKES.values())))
    binaries = {path.name: path for path in build_selftests(source, reporter)}
    guest = Guest(
        image.obtain(reporter) / "Image",
        build_program("guest", reporter),
        load_machine("neoverse-n1"),
        ARMS[arm].boot,
        (f"/{suite}",),
        {f"/{suite}": binaries[suite]},
    )
    (done,) = guest.execute(tmp_path / "log", silence=600, splats=True)
    failed = [case.name for case in parse(done.lines) if case.outcome == "failed"]
    assert done.status == 1
    assert any(re.fullmatch(name, case) for case in failed), failed
