# SPDX-License-Identifier: GPL-2.0
"""What each size of huge pages is promised to save is what a guest counts with it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from firsttouch.building.host_tools import cross_compile
from firsttouch.building.programs import build_init, build_recorder
from firsttouch.building.source import KernelSource
from firsttouch.catalog.machines import load_machine
from firsttouch.finder.remedies import AHEAD, FOLIOS, table_bytes, worlds_of
from firsttouch.progress import Reporter
from firsttouch.trace.reading import read_recording
from firsttouch.vm.guest import Guest
from firsttouch.vm.protocol import read_channel
from firsttouch.vm.qemu import RESULTS, command
from tests.support.kernels import with_variant
from tests.trace.conftest import Compile

pytestmark = pytest.mark.kernel

_MIB = 1 << 20


@pytest.mark.parametrize(
    ("release", "changed", "variant", "page_size"),
    [
        # It splits the huge zero page, and 7.3 replaces it.
        ("6.12", False, None, 4096),
        ("7.3", True, None, 4096),
        pytest.param("6.12", True, "pages-16k", 16384, marks=pytest.mark.regress),
        pytest.param("6.12", True, "pages-64k", 65536, marks=pytest.mark.regress),
    ],
)
def test_each_size_saves_what_is_promised(
    sources: Callable[[str], KernelSource],
    compile_c: Compile,
    tmp_path: Path,
    reporter: Reporter,
    release: str,
    changed: bool,
    variant: str | None,
    page_size: int,
) -> None:
    program = compile_c("sizes.c", "-static", compiler=f"{cross_compile()}gcc")
    table = table_bytes(page_size)
    # tests/finder/test_page_tables.py has the names.
    sizes = {name: size for name, size in FOLIOS.items() if name in worlds_of(page_size)}
    # A changed kernel gives folios to writes to zero pages, too: only fault-ahead expects that.
    settings: dict[str, tuple[tuple[str, ...], str, str]] = {
        name: ((_setting(size, table),), "always", "never")
        for name, size in sizes.items()
        if not changed
    }
    if changed:
        files = tuple(_setting(page_size << order, table) for order in (2, 3, 4))
        settings[AHEAD] = files, "inorder", "never"
    touch = f"/sizes {table // _MIB}"
    guest = Guest(
        with_variant(sources(release), changed, variant).obtain(reporter) / "Image",
        build_init(reporter),
        load_machine("neoverse-n1"),
        ("transparent_hugepage=never", "norandmaps"),
        (
            f"/ftrecord -o /tmp/trace.data -- {touch}",
            # The recorder starts it otherwise than init: it may take a fault less.
            touch,
            *(
                line
                for files, on, off in settings.values()
                for line in (
                    *(f"/sizes {file} {on}" for file in files),
                    touch,
                    *(f"/sizes {file} {off}" for file in files),
                )
            ),
            "/ftrecord -x /tmp/trace.data",
        ),
        {"/ftrecord": build_recorder(reporter, native=False), "/sizes": program},
        memory=max(4 << 30, 16 * table),
    )
    subprocess.run(command(guest, tmp_path, tmp_path / "log"), check=True, timeout=600)
    done = read_channel((tmp_path / RESULTS).read_text())
    assert done is not None and {result.status for result in done} == {0}, done
    _, *counts, recording = (result.lines[0] for result in done if result.lines)
    data = tmp_path / "trace.data"
    data.write_bytes(bytes.fromhex(recording))
    saved = {r.name: r.saved for r in read_recording(data, tmp_path).trace.remedies}
    before, *after = map(int, counts)
    assert {name: saved[name] for name in settings} == {
        name: before - faults for name, faults in zip(settings, after, strict=True)
    }


def _setting(size: int, table: int) -> str:
    """Return the file that has the policy of a size."""
    folder = "/sys/kernel/mm/transparent_hugepage"
    return f"{folder}/enabled" if size == table else f"{folder}/hugepages-{size >> 10}kB/enabled"
