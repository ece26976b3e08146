# SPDX-License-Identifier: GPL-2.0
"""kexec of a changed kernel into itself: the relocation code has no zero page for a table."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from firsttouch.vm import initramfs as cpio
from firsttouch.vm.guest import Guest
from tests.support.ktap import parse
from firsttouch.catalog.machines import load_machine
from firsttouch.build.programs import build_program, build_selftests
from firsttouch.progress import Reporter
from firsttouch.build.sources import KernelSource, releases
from firsttouch.build.host_tools import cross_compile

pytestmark = pytest.mark.kernel

Images = Callable[[str, bool], Path]
Sources = Callable[[str], KernelSource]

_SUITES = ("zero_page_mapping_test", "zero_page_cow_test")


@pytest.fixture(scope="session")
def kexec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    binary = tmp_path_factory.mktemp("kexec") / "kexec"
    source = Path(__file__).with_name("kexec.c")
    flags = ("-O2", "-Wall", "-Wextra", "-Werror", "-static")
    subprocess.run([f"{cross_compile()}gcc", *flags, "-o", binary, source], check=True)
    return binary


@pytest.mark.parametrize("colors", [1, 16])
@pytest.mark.parametrize("release", sorted(releases()))
def test_kexec_into_itself(
    images: Images,
    sources: Sources,
    reporter: Reporter,
    kexec: Path,
    tmp_path: Path,
    release: str,
    colors: int,
) -> None:
    suites = {path.name: path for path in build_selftests(sources(release), reporter)}
    init = build_program("guest", reporter)
    second = tmp_path / "initrd"
    second.write_bytes(
        cpio.console_archive()
        + cpio.archive(
            {
                "/init": init.read_bytes(),
                "/cell/commands": "".join(f"/{suite}\n" for suite in _SUITES).encode(),
                **{f"/{suite}": suites[suite].read_bytes() for suite in _SUITES},
            }
        )
    )
    guest = Guest(
        images(release, True),
        init,
        load_machine("neoverse-n1"),
        (f"zero_page_colors={colors}",),
        ("/kexec /next/Image /next/initrd /next/cmdline",),
        {
            "/kexec": kexec,
            "/next/Image": images(release, True),
            "/next/initrd": second,
            "/next/cmdline": tmp_path / "cmdline",
        },
        # An ITS writes to tables in memory that only EFI could tell the second
        # kernel to keep: without it, into that kernel's image.
        board=("its=off",),
    )
    (tmp_path / "cmdline").write_text(guest.command_line())
    log = tmp_path / "log"
    # The first kernel never ends its command: what ends are the second one's.
    done = guest.execute(log)
    text = log.read_text(errors="replace")
    assert text.count("Linux version") == 2
    said = re.findall(r"^zero page: (\d+) colors?,", text, re.M)
    assert said == [str(colors)] * 2
    assert len(done) == len(_SUITES)
    for suite in done:
        cases = parse(list(suite.lines))
        assert cases
        assert not [case.name for case in cases if case.outcome == "failed"]
        assert any(f"colour {colors - 1}" in case.name for case in cases)
