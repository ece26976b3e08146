# SPDX-License-Identifier: GPL-2.0
"""The package of a kernel on a Debian system: installed, booted, surveyed and removed."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable

import pytest

from firsttouch.building.configuration import CLOUD
from firsttouch.building.kernel_packages import kernel_package
from firsttouch.building.sources import KernelSource
from firsttouch.lab.plan import DEFAULT_RELEASE
from firsttouch.places import REPOSITORY
from firsttouch.progress import Reporter
from tests.support.debian_system import DebianSystem, debian_disk
from tests.support.wheel import build_wheel

pytestmark = [pytest.mark.kernel, pytest.mark.regress]

# What a user types on a real machine, one boot after the other; docs/on-real-hardware.md.
_STEPS = """\
set -eu
trap 'echo "# ended"; systemctl poweroff' EXIT
export HOME=/root PATH=/root/bin:$PATH PYTHONPATH=/root/wheel
cd /root
boot=$(cat boot 2>/dev/null || echo 1)
echo $((boot + 1)) >boot
echo "# kernel $(uname -r)"
case $boot in
1)
	python3 -m zipfile -e /mnt/*.whl wheel
	cp /mnt/on-real-hardware .
	mkdir bin
	printf '#!/bin/sh\\nexec python3 -m firsttouch "$@"\\n' >bin/firsttouch
	chmod +x bin/firsttouch
	./on-real-hardware install /mnt/*.deb
	;;
2)
	./on-real-hardware compare
	for survey in out/hardware/*/survey.json; do
		echo "# $survey"
		cat $survey
		echo "# end"
	done
	# It runs: it must stay.
	! ./on-real-hardware undo
	;;
3)
	./on-real-hardware undo
	ls /boot
	exit
	;;
esac
trap - EXIT
systemctl reboot
"""
# Seconds. The initial RAM disk is made in silence.
_SILENCE = 1800.0


@pytest.fixture(scope="module")
def printed(
    sources: Callable[[str], KernelSource],
    reporter: Reporter,
    tmp_path_factory: pytest.TempPathFactory,
) -> str:
    """What the steps print on Debian's kernel, on that of the package, and on Debian's again."""
    package = kernel_package(sources(DEFAULT_RELEASE), CLOUD, reporter, changed=True)
    scratch = tmp_path_factory.mktemp("system")
    steps = scratch / "steps"
    steps.mkdir()
    (steps / "run").write_text(_STEPS)
    shutil.copy(REPOSITORY / "on-real-hardware", steps)
    shutil.copy(package.file(reporter), steps)
    shutil.copy(build_wheel(scratch), steps)
    return DebianSystem(debian_disk(reporter)).run(steps, scratch, silence=_SILENCE)


def test_the_package_is_installed_booted_and_removed(printed: str) -> None:
    debian, changed, again = re.findall(r"^# kernel (.*)$", printed, re.M)
    assert re.fullmatch(r".*-first-touch-cloud-arm64", changed)
    assert debian == again != changed
    left = printed.rpartition(f"# kernel {again}")[2]
    assert f"vmlinuz-{debian}" in left
    assert changed not in left


def test_the_survey_sees_one_fault_where_it_saw_two(printed: str) -> None:
    before, after = (_faults(printed, name) for name in ("before", "after"))
    assert before["store"] == after["store"] == 1
    for atomic in ("ldadd", "swp", "cas"):
        assert (before[atomic], after[atomic]) == (2, 1), atomic
    assert "takes 2.00 page faults in A and 1.00 in B" in printed


def _faults(printed: str, name: str) -> dict[str, float]:
    """Return the faults per base page by each kind of touch, from a survey that was printed."""
    (text,) = re.findall(rf"^# out/hardware/{name}/survey.json$(.*?)^# end$", printed, re.M | re.S)
    touches = json.loads(text)["findings"]["touches"]
    return {touch["kind"]: touch["faults"] for touch in touches if touch["page"] == "base"}
