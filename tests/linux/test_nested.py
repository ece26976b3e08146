# SPDX-License-Identifier: GPL-2.0
"""A changed kernel as host and as guest of KVM: the guest's tests pass."""

from __future__ import annotations

from dataclasses import replace

import pytest

from firsttouch.build.disks import RootDisk
from firsttouch.catalog.experiments import Packages
from firsttouch.catalog.releases import release_names
from firsttouch.progress import Reporter
from tests.linux.conftest import AddScript, Begin, MakeGuest
from tests.linux.outcomes import Outcomes
from tests.support.ktap import parse

pytestmark = [pytest.mark.kernel, pytest.mark.regress]

# The nested kernel has no programs, runs its tests, finds no init and panics.
_SCRIPT = """\
mount -o bind /dev /data/dev
mount -t proc proc /data/proc
mount -t tmpfs tmpfs /data/tmp
cp /Image /data/tmp/Image
chroot /data /usr/bin/qemu-system-aarch64 -accel kvm -cpu host -M virt,gic-version=3 -m 512 \\
  -nodefaults -display none -no-reboot -serial stdio -kernel /tmp/Image \\
  -append "console=ttyAMA0 kunit.enable=1 panic=-1"
"""


@pytest.mark.parametrize("release", release_names())
def test_a_guest_of_kvm_boots_and_passes_its_kunit_tests(
    make_guest: MakeGuest,
    outcomes: Outcomes,
    record: Begin,
    reporter: Reporter,
    add_script: AddScript,
    release: str,
) -> None:
    recorded = record(release, "server", "KUnit in a guest of KVM")
    guest = make_guest(release, "server")
    guest = replace(
        guest,
        files={"/Image": guest.image},
        disk=RootDisk(Packages("trixie", ("qemu-system-arm",))).obtain(reporter),
        board=("virtualization=on",),
    )
    (done,) = outcomes.of(add_script(guest, _SCRIPT), f"{release} nested").commands
    cases = parse(done.lines)
    recorded(cases)
    assert any(case.outcome == "passed" for case in cases), done.lines[-20:]
    assert not [case.name for case in cases if case.outcome == "failed"]
    assert any("zero page: " in line for line in done.lines)
