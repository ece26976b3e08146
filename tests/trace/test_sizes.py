# SPDX-License-Identifier: GPL-2.0
"""What each size of huge pages is promised to save is what a guest counts with it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from firsttouch.building.host_tools import cross_compile
from firsttouch.building.programs import INIT, RECORDER
from firsttouch.catalog.machines import load_machine
from firsttouch.progress import Reporter
from firsttouch.trace.reading import read_recording
from firsttouch.trace.remedies import FOLIOS, table_bytes
from firsttouch.vm.guest import Guest
from firsttouch.vm.supervision import run_guest
from tests.support.kernels import releases_with_stock
from tests.trace.conftest import Compile

pytestmark = pytest.mark.kernel

_MIB = 1 << 20
# How far the faults that are left may be from the prediction. A block of 64 KiB has one state;
# the program gives back parts of blocks of 2 MiB, which the states only approximate.
_NEAR = {1 << 16: 0.01, 2 << 20: 0.15}


@pytest.mark.parametrize("release", releases_with_stock())
def test_each_size_saves_what_is_predicted(
    images: Callable[[str, bool], Path],
    compile_c: Compile,
    tmp_path: Path,
    reporter: Reporter,
    release: str,
) -> None:
    """6.12 splits the huge zero page, which the prediction for 2 MiB does not expect."""
    program = compile_c("sizes.c", "-static", compiler=f"{cross_compile()}gcc")
    table = table_bytes(4096)
    files = {
        name: _setting(size, table)
        for name, size in FOLIOS.items()
        if release != "6.12" or size < table
    }
    touch = f"/sizes {table // _MIB}"
    guest = Guest(
        images(release, False),
        INIT.obtain(reporter),
        load_machine("neoverse-n1"),
        ("transparent_hugepage=never", "norandmaps"),
        (
            f"/ftrecord -o /tmp/trace.data -- {touch}",
            # The recorder starts it otherwise than init: it may take a fault less.
            touch,
            *(
                line
                for file in files.values()
                for line in (f"/sizes {file} always", touch, f"/sizes {file} never")
            ),
            "/ftrecord -x /tmp/trace.data",
        ),
        {"/ftrecord": RECORDER.obtain(reporter), "/sizes": program},
        memory=max(4 << 30, 16 * table),
    )
    done = run_guest(guest, tmp_path / "log").commands
    assert {result.status for result in done} == {0}, done
    _, *counts, recording = (result.lines[0] for result in done if result.lines)
    data = tmp_path / "trace.data"
    data.write_bytes(bytes.fromhex(recording))
    saved = {r.name: r.saved for r in read_recording(data, tmp_path).trace.remedies}
    before, *after = map(int, counts)
    for name, faults in zip(files, after, strict=True):
        near = pytest.approx(faults, rel=_NEAR[FOLIOS[name]])
        assert before - saved[name] == near, name


def _setting(size: int, table: int) -> str:
    """Return the file that has the policy of a size."""
    folder = "/sys/kernel/mm/transparent_hugepage"
    return f"{folder}/enabled" if size == table else f"{folder}/hugepages-{size >> 10}kB/enabled"
