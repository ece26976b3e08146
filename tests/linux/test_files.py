# SPDX-License-Identifier: GPL-2.0
"""First touches that write-intent faults leave alone: of files, shared memory, AArch32 tasks."""

from dataclasses import replace
from pathlib import Path

import pytest

from firsttouch.building.programs import FileDisk
from firsttouch.catalog.kernels import release_names
from firsttouch.progress import Reporter
from firsttouch.vm.supervision import run_guest
from tests.linux.conftest import HERE, AddScript, MakeGuest, compiled

pytestmark = pytest.mark.kernel

_PAGES = 256
# Pages that the kernel maps around one that is read, if they are cached: fault_around_bytes.
_AROUND = 16
_READS = _PAGES // _AROUND
# The window around a store has 1, 1, 2, 4, 8 pages first.
_STORES = _READS + 4


@pytest.mark.parametrize("release", release_names())
def test_an_atomic_add_of_cached_pages_reads_sixteen_at_once(
    make_guest: MakeGuest, add_script: AddScript, reporter: Reporter,
    tmp_path: Path, release: str,
) -> None:  # fmt: skip
    """Only anonymous memory takes two faults for each page.

    Shared memory is mapped writable by the read, so an atomic add takes fewer faults than a
    store, whose window grows with what is mapped. A shared file wants to know of each write.
    """
    guest = replace(
        make_guest(release, None, arm="off"),
        files={"/files": compiled(HERE / "files.c", tmp_path)},
        disk=FileDisk(4 << 20).obtain(reporter),
    )
    mount = "umount /data && mkdir /mnt && mount -t ext4 -o dax=never /dev/pmem0 /mnt || exit 1"
    (done,) = run_guest(
        add_script(guest, f"{mount}\nexec /files /mnt\n"), tmp_path / "log"
    ).commands
    (metrics,) = done.objects()
    assert dict(metrics) == {
        "private anonymous": [_PAGES, 2 * _PAGES],
        "shared memory": [_STORES, _READS],
        "private mapping of shared memory": [_PAGES, _READS + _PAGES],
        "shared file": [_PAGES, _READS + _PAGES],
        "private file": [_PAGES, _READS + _PAGES],
    }


@pytest.mark.regress
@pytest.mark.parametrize("release", release_names())
@pytest.mark.parametrize("arm", ["off", "on"])
def test_an_update_of_aarch32_takes_two_faults(
    make_guest: MakeGuest, tmp_path: Path, release: str, arm: str
) -> None:
    """No decoder reads its instructions. Other faults are less than one page in ten."""
    pages, guest = 1024, make_guest(release, None, arm=arm)
    program = compiled(HERE / "aarch32.c", tmp_path, "arm-linux-gnueabihf-")
    guest = replace(guest, commands=("/aarch32",), files={"/aarch32": program})
    (done,) = run_guest(guest, tmp_path / "log").commands
    (line,) = done.objects()
    faults = dict(line)
    assert faults.pop("bits") == 32
    assert faults.keys() == {"load, store", "ldrex, strex"}
    for count in faults.values():
        assert 2 * pages <= int(str(count)) < 2.1 * pages
