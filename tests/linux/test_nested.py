# SPDX-License-Identifier: GPL-2.0
"""A changed kernel as host and as guest of KVM: the guest's tests pass, and its first touches."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from firsttouch.building.programs import BENCH, RootDisk
from firsttouch.catalog.experiments import Packages
from firsttouch.catalog.kernels import release_names
from firsttouch.files import REPOSITORY
from firsttouch.progress import Reporter
from firsttouch.tables import parse_json
from firsttouch.vm.guest import Guest
from firsttouch.vm.qemu import guest_archive
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

_PAGES = 4096
# Of the status: a write, to a page that was mapped, but not for writes.
_UPGRADE = 0x4C


def _touches(lines: Iterable[str]) -> Counter[str]:
    """Return what the touches took, by the difference of a guest with few and one with many.

    `guest` is the number of the guest's page faults, `provided` that of the pages that the host
    had to provide, `host` that of its stage-2 faults, and `twice` that of writes to a page that
    it had mapped for reads alone: its double faults.
    """
    taken: Counter[str] = Counter()
    for line in lines:
        boot, _, rest = line.partition(" ")
        sign = -1 if boot == "few" else 1
        if rest.startswith("{"):
            metrics = parse_json(rest, "what the guest of a guest printed").table("metrics")
            taken["guest"] += sign * metrics.take("page_faults", int)
        elif boot in ("few", "many"):
            *what, number = rest.split()
            if what == ["lost"]:
                assert number == "0", f"the host's trace lost {number} faults: {boot}"
                continue
            time, status = what
            count = sign * int(number)
            upgrade = int(status, 16) & _UPGRADE == _UPGRADE
            taken.update(host=count, provided=count * (time == "first"), twice=count * upgrade)
    return taken


@pytest.mark.parametrize("release", release_names())
@pytest.mark.parametrize("host", ["stock", "on"])
@pytest.mark.parametrize("guest", ["stock", "on"])
def test_a_host_faults_once_for_a_first_touch_in_its_guest(
    make_guest: MakeGuest, outcomes: Outcomes, reporter: Reporter, add_script: AddScript,
    tmp_path: Path, release: str, host: str, guest: str,
) -> None:  # fmt: skip
    inner = replace(
        make_guest(release, None, arm=guest),
        files={"/ftbench": BENCH.obtain(reporter)},
        timing="interleaved",
    )
    files = {"Image": inner.image}
    for name, pages in (("few", 1), ("many", 1 + _PAGES)):
        command = f"/ftbench populate --by ldadd --page 4k --size {pages * 4096}"
        files[name] = tmp_path / name
        files[name].write_bytes(guest_archive(replace(inner, commands=(command,))))
    outer = _host(make_guest(release, None, arm=host), reporter, **files)
    script = (HERE / "nested_touches.sh").read_text()
    script = script.replace("COMMAND_LINE", inner.command_line())
    name = f"{release} first touches, {host} as host of {guest}"
    (done,) = outcomes.of(add_script(outer, script), name).commands
    took = _touches(done.lines)
    in_host = took["host"] / took["provided"]
    print(f"{took} of {_PAGES:,} pages")
    # Three digits: the rest of the two boots differs by a few faults.
    figures = f"{took['guest'] / _PAGES:.3g} | {in_host:.3g} | {took['twice']}"
    row = f"| {release} | {host} | {guest} | {figures} |"
    print(row)
    assert took["guest"] == (2 if guest == "stock" else 1) * _PAGES
    # The rest of the pages had been used and freed in the guest before.
    assert _PAGES // 2 < took["provided"] <= _PAGES + _PAGES // 100
    assert took["twice"] == 0
    assert row in (REPOSITORY / "docs/evidence/write-intent.md").read_text("utf-8")
