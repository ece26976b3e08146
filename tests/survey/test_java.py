# SPDX-License-Identifier: GPL-2.0
"""What the survey says about a JVM, against the page faults of the installed JVM."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import subprocess

import pytest

from firsttouch.building.programs import build_ftbench
from firsttouch.progress import Reporter
from firsttouch.survey.findings import Findings
from firsttouch.survey.host import host_files, read_host
from firsttouch.survey.rounds import TaskRunner
from firsttouch.survey.samples import Sample
from firsttouch.survey.tasks import touch_tasks
from tests.support.surveys import examined, texts

JAVA = shutil.which("java")
HEAP = 512 << 20
GIB = 1 << 30
pytestmark = pytest.mark.skipif(JAVA is None, reason="java is not installed: it is the oracle")


def _surveyed() -> Findings:
    """Return the first touches of this host: its counts, and times that follow from them."""
    runner = TaskRunner(build_ftbench(Reporter(), native=True), 600, lambda _spent: None)
    host = read_host(runner.must("--files", *host_files(0)), 0)
    runner.rounds(touch_tasks(host, 32 << 20), 600, 1)
    return examined(host, [_untimed(sample) for sample in runner.samples])


def _untimed(sample: Sample) -> Sample:
    """Return a sample in which each fault takes 1 us: nothing depends on the host's load."""
    if not sample.line or not sample.line.metrics:
        return sample
    time = 1000 * sample.line.metrics["page_faults"]
    metrics = {**sample.line.metrics, "elapsed_ns": time, "sys_ns": time, "user_ns": 0.0}
    return dataclasses.replace(sample, line=dataclasses.replace(sample.line, metrics=metrics))


def _faults(*flags: str) -> int:
    """Return the page faults of a JVM that touches its heap and ends."""
    assert JAVA
    heap = f"{HEAP >> 20}m"
    process = subprocess.Popen(
        [JAVA, "-XX:+UseSerialGC", "-XX:+AlwaysPreTouch", f"-Xms{heap}", f"-Xmx{heap}", *flags,
         "-version"],
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_minflt


@pytest.mark.long
def test_what_is_said_of_a_jvm_is_what_a_jvm_does() -> None:
    said = texts(_surveyed(), "JVM")
    plain, huge = _faults(), _faults("-XX:+UseTransparentHugePages")
    pages = HEAP / os.sysconf("SC_PAGESIZE")
    if "changes nothing" in said:
        assert abs(plain - huge) < 0.1 * pages
    elif "without -XX:+UseTransparentHugePages" in said:
        assert plain < 0.2 * pages
    else:
        assert "add -XX:+UseTransparentHugePages" in said
        figures = re.search(r"takes ([\d,]+) page faults .*?\), ([\d,]+) and", said)
        assert figures
        in_huge, in_small = (int(figure.replace(",", "")) for figure in figures.groups())
        assert plain - huge == pytest.approx((in_small - in_huge) * HEAP / GIB, rel=0.1)
