# SPDX-License-Identifier: GPL-2.0
"""A newcomer's first answer: `make lab` on a bare Debian, in a root of its own.

How long it takes is printed, and is no part of the test: it depends on the host.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from firsttouch.building.apt import mirror_archive
from firsttouch.places import REPOSITORY

pytestmark = pytest.mark.regress

# What reaches the host's registries, too: names of hosts and certificates.
_OF_THE_HOST = (
    "etc/resolv.conf", "etc/hosts", "etc/pip.conf", "etc/ssl/certs/ca-certificates.crt",
    "opt/wheels",
)  # fmt: skip
_MOUNTS = (("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"))


@pytest.fixture(params=["bookworm", "trixie"])
def bare(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A root with Debian's smallest system, make and git; the checkout is in /checkout."""
    root = tmp_path / "root"
    sources = tmp_path / "mirror.sources"
    sources.write_text(mirror_archive(request.param).source)
    subprocess.run(
        ["mmdebstrap", "--quiet", "--mode=root", "--variant=minbase",
         "--include=make,git,ca-certificates", request.param, root, sources],
        check=True,
    )  # fmt: skip
    for name in _OF_THE_HOST:
        if Path("/", name).exists():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["cp", "-rT", f"/{name}", root / name], check=True)
    subprocess.run(["git", "clone", "-q", REPOSITORY, root / "checkout"], check=True)
    with ExitStack() as mounted:
        for kind, place in _MOUNTS:
            subprocess.run(["mount", "-t", kind, kind, root / place[1:]], check=True)
            mounted.callback(_unmount, root / place[1:])
        yield root


def _unmount(place: Path) -> None:
    subprocess.run(["umount", "-l", place], check=True)


def test_a_bare_debian_has_the_first_half_of_the_answer_before_it_builds(
    bare: Path, record_property: Callable[[str, object], None]
) -> None:
    variables = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(("PIP_", "SSL_", "http", "REQUESTS_", "CURL_"))
    }
    began = time.monotonic()
    with subprocess.Popen(
        ["chroot", bare, "make", "-C", "/checkout", "lab"],
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C", **variables},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    ) as lab:  # fmt: skip
        lines = []
        assert lab.stdout
        for line in lab.stdout:
            print(f"{time.monotonic() - began:6.1f} s  {line}", end="")
            lines.append(line)
            if line.startswith("The second half"):
                break
        seconds = time.monotonic() - began
        os.killpg(lab.pid, signal.SIGTERM)
    record_property("seconds to the first half of the answer", round(seconds))
    print(f"{bare}: the first half of the answer after {seconds:.0f} s")
    (add,) = (line.split() for line in lines if line.startswith("an atomic add"))
    assert add[3:5] == ["2", "3"]
    assert not any(line.startswith("Building") for line in lines)
