# SPDX-License-Identifier: GPL-2.0
"""A changed kernel as host and as guest of KVM: the guest's tests pass, and its first touches."""

from dataclasses import replace
from pathlib import Path

import pytest

from firsttouch.building.programs import RootDisk
from firsttouch.catalog.experiments import Packages
from firsttouch.catalog.releases import release_names
from firsttouch.progress import Reporter
from firsttouch.vm.guest import Guest
from tests.linux.conftest import HERE, AddScript, MakeGuest
from tests.linux.outcomes import Outcomes
from tests.support.ktap import parse, show

pytestmark = [pytest.mark.kernel, pytest.mark.regress]


def _host(guest: Guest, reporter: Reporter, **files: Path) -> Guest:
    """Return `guest` as a host of KVM, with QEMU on its disk and `files` in its root directory."""
    return replace(
        guest,
        files={f"/{name}": file for name, file in files.items()},
        disk=RootDisk(Packages("trixie", ("qemu-system-arm",))).obtain(reporter),
        board=("virtualization=on",),
    )


@pytest.mark.parametrize("release", release_names())
def test_a_guest_of_kvm_boots_and_passes_its_kunit_tests(
    make_guest: MakeGuest, outcomes: Outcomes, reporter: Reporter,
    add_script: AddScript, release: str,
) -> None:  # fmt: skip
    guest = make_guest(release, "server")
    guest = _host(guest, reporter, Image=guest.image)
    (done,) = outcomes.of(
        add_script(guest, (HERE / "nested_tests.sh").read_text()), f"{release} nested"
    ).commands
    cases = parse(done.lines)
    show(cases)
    assert any(case.outcome == "passed" for case in cases), done.lines[-20:]
    assert not [case.name for case in cases if case.outcome == "failed"]
    assert any("zero page: " in line for line in done.lines)


# -- first touches in a guest, counted on both levels
