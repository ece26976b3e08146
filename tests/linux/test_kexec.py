# SPDX-License-Identifier: GPL-2.0
"""kexec of a changed kernel into itself: the relocation code has no zero page for a table."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from firsttouch.building.program_root import archive
from firsttouch.building.source import KernelSource
from firsttouch.catalog.kernels import release_names
from firsttouch.progress import Reporter
from firsttouch.vm import qemu
from tests.linux.conftest import HERE, MakeGuest, compiled
from tests.linux.outcomes import Outcomes
from tests.support.ktap import parse
from tests.support.selftests import build_selftests

pytestmark = pytest.mark.kernel

Sources = Callable[[str], KernelSource]

_SUITES = ("mm/zero_page_mapping", "mm/zero_page_cow")


@pytest.mark.parametrize("colors", [1, 16])
@pytest.mark.parametrize("release", release_names())
def test_kexec_into_itself(
    make_guest: MakeGuest, outcomes: Outcomes, sources: Sources, reporter: Reporter,
    tmp_path: Path, release: str, colors: int,
) -> None:  # fmt: skip
    suites = build_selftests(sources(release), reporter)
    guest = make_guest(release, None, f"zero_page_colors={colors}")
    second, command_line = tmp_path / "initrd", tmp_path / "cmdline"
    second.write_bytes(
        qemu.console_archive()
        + archive(
            {
                "/init": guest.init.read_bytes(),
                "/cell/commands": "".join(f"/{suite}\n" for suite in _SUITES).encode(),
                **{f"/{suite}": suites[suite].read_bytes() for suite in _SUITES},
            }
        )
    )
    command_line.write_text(guest.command_line())
    guest = replace(
        guest,
        commands=("/kexec /next/Image /next/initrd /next/cmdline",),
        files={
            "/kexec": compiled(HERE / "kexec.c", tmp_path),
            "/next/Image": guest.image,
            "/next/initrd": second,
            "/next/cmdline": command_line,
        },
        # An ITS writes to tables in memory that only EFI could tell the second
        # kernel to keep: without it, into that kernel's image.
        board=("its=off",),
    )
    # The first kernel's command never ends; the ends are those of the second kernel's.
    outcome = outcomes.of(guest, f"{release} kexec {colors}")
    text = "\n".join(outcome.log)
    assert text.count("Linux version") == 2
    said = re.findall(r"\bzero page: (\d+) colors?,", text, re.M)
    assert said == [str(colors)] * 2
    assert len(outcome.commands) == len(_SUITES)
    for suite in outcome.commands:
        cases = parse(suite.lines)
        assert suite.status == 0
        assert not [case.name for case in cases if case.outcome == "failed"]
        assert any(
            f"colour {colors - 1}" in case.name and case.outcome == "passed" for case in cases
        )
