# SPDX-License-Identifier: GPL-2.0
"""AArch32 tasks: no decoder reads their instructions."""

from dataclasses import replace
from pathlib import Path

import pytest

from firsttouch.catalog.kernels import release_names
from firsttouch.vm.supervision import run_guest
from tests.linux.conftest import HERE, MakeGuest, compiled

pytestmark = [pytest.mark.kernel, pytest.mark.regress]

_PAGES = 1024
# Faults of others: less than one page in ten.
_OTHERS = _PAGES // 10


@pytest.mark.parametrize("release", release_names())
@pytest.mark.parametrize("arm", ["off", "on"])
def test_an_update_takes_two_faults(
    make_guest: MakeGuest, tmp_path: Path, release: str, arm: str
) -> None:
    guest = make_guest(release, None, arm=arm)
    program = compiled(HERE / "aarch32.c", tmp_path, "arm-linux-gnueabihf-")
    guest = replace(guest, commands=("/aarch32",), files={"/aarch32": program})
    (done,) = run_guest(guest, tmp_path / "log").commands
    (line,) = done.objects()
    faults = dict(line)
    assert faults.pop("bits") == 32
    assert faults.keys() == {"load, store", "ldrex, strex"}
    for count in faults.values():
        assert 2 * _PAGES <= int(str(count)) < 2 * _PAGES + _OTHERS
