# SPDX-License-Identifier: GPL-2.0
"""`firsttouch lab --time` to its end, on a host whose EL2 is emulated: its times mean nothing."""

import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from firsttouch.building.programs import INIT, PMU, RootDisk, build_ftbench, ftbench, ftbench_list
from firsttouch.catalog.arms import load_arm
from firsttouch.catalog.experiments import Packages
from firsttouch.files import REPOSITORY
from firsttouch.lab.results import read_times
from firsttouch.progress import Reporter
from firsttouch.tables import Fields
from tests.linux.conftest import HERE, AddScript, MakeGuest
from tests.linux.outcomes import Outcomes
from tests.linux.time_in_guest import name_of

pytestmark = [pytest.mark.kernel, pytest.mark.regress]

_PACKAGES = Packages(
    "trixie",
    ("qemu-system-arm", "device-tree-compiler", "python3", "python3-rich", "python3-jinja2",
     "python3-capstone", "python3-pyelftools", "python3-argcomplete"),
)  # fmt: skip
_CODE = ("firsttouch", "architectures", "arms", "experiments", "machines", "linux",
         "tests/__init__.py", "tests/linux/__init__.py",
         "tests/linux/time_in_guest.py", "tests/support/__init__.py",
         "tests/support/sources.py")  # fmt: skip


def _same_bytes(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Leave out what differs between checkouts: the key of the guest depends on it."""
    member.mtime, member.uid, member.gid, member.uname, member.gname = 0, 0, 0, "", ""
    return None if "__pycache__" in member.name else member


def test_lab_time_runs_to_its_end_as_host_of_kvm(
    make_guest: MakeGuest, outcomes: Outcomes, reporter: Reporter, add_script: AddScript,
    tmp_path: Path,
) -> None:  # fmt: skip
    outer = make_guest("6.12", None, arm="stock")
    parts = {
        name_of(load_arm("stock").kernel): outer.image,
        name_of(load_arm("on").kernel): make_guest("6.12", None, arm="on").image,
        name_of(INIT): outer.init,
        name_of(ftbench()): build_ftbench(reporter),
        name_of(PMU): outer.init,
        "contract.json": tmp_path / "contract",
    }
    (tmp_path / "contract").write_text(ftbench_list(reporter))
    with tarfile.open(tmp_path / "code", "w") as code:
        for name in _CODE:
            code.add(REPOSITORY / name, name, filter=_same_bytes)
    files = {f"/parts/{name}": file for name, file in parts.items()}
    outer = replace(
        outer,
        files={**files, "/code.tar": tmp_path / "code"},
        disk=RootDisk(_PACKAGES).obtain(reporter),
        board=("virtualization=on",),
        cpus=2,
    )
    script = (HERE / "time_in_guest.sh").read_text()
    (done,) = outcomes.of(add_script(outer, script), "lab --time", silence=1200).commands
    printed = "\n".join(done.lines)
    said, _, results = printed.partition("\nRESULTS\n")
    print(said)
    assert "status" not in said
    (tmp_path / "results.jsonl").write_text(f"{results}\n")
    times = read_times(tmp_path)
    for result in times:
        assert [boot.round for boot in result.boots] == [1, 2]
        assert [boot.resumed for boot in result.boots] == [False, True]
        metrics = [Fields("", line).table("metrics").numbers() for line in result.lines]
        assert len(metrics) == 10
        # The host's emulated PMU has both counters, and KVM gives them to its guests.
        for each in metrics:
            assert each["cycles_kernel"] > 0
            assert each["instructions_kernel"] > 0
        if result.cell.params["by"] == "ldadd":
            # As emulation counts: stock splits the huge zero page for 4 KiB each.
            huge, on = result.cell.params["page"] == "2m", result.cell.arm == "on"
            expected = (2 if on else 2 * 513) if huge else (1024 if on else 2048)
            faults = [each["page_faults"] for each in metrics]
            assert faults == pytest.approx([expected] * 10, rel=0.02)
