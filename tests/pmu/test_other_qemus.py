# SPDX-License-Identifier: GPL-2.0
"""The plugin in the QEMUs of other Debians: all of its tests, with each of these QEMUs on PATH."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from firsttouch.building.apt import unpack
from firsttouch.catalog.experiments import Packages
from firsttouch.files import REPOSITORY
from firsttouch.progress import Reporter
from tests.pmu.conftest import HERE, PMU, QEMU, must_run

pytestmark = pytest.mark.regress

# The version of the plugin's interface that the QEMU of a suite has at least.
_APIS = {"trixie": 4, "forky": 7}


@pytest.mark.parametrize("suite", _APIS)
def test_the_plugins_tests_pass_in_the_qemu_of_another_debian(suite: str, tmp_path: Path) -> None:
    """QEMU runs with its own suite's libraries and loader: those of this host may be older."""
    architecture = must_run("dpkg", "--print-architecture").strip()
    root = unpack(Packages(suite, ("qemu-system-arm",), architecture), Reporter())
    (loader,) = root.glob("usr/lib*/ld-linux-*.so.*")
    libraries = [str(folder) for folder in root.glob("usr/lib/*-linux-gnu")]
    libraries += [f"{folder}/pulseaudio" for folder in libraries]
    qemu = tmp_path / "bin" / QEMU
    qemu.parent.mkdir()
    command = f"{loader} --library-path {':'.join(libraries)} {root}/usr/bin/{QEMU}"
    qemu.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    qemu.chmod(0o755)
    environment = {**os.environ, "PATH": f"{qemu.parent}:{os.environ['PATH']}"}
    assert int(must_run(PMU / "api.sh", env=environment)) >= _APIS[suite]
    done = subprocess.run(
        [
            sys.executable, "-m", "pytest", "-q", "-m", "not regress", str(HERE),
            "--basetemp", str(tmp_path / "tests"),
        ],
        cwd=REPOSITORY, env=environment, text=True, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-8000:]
