# SPDX-License-Identifier: GPL-2.0
"""Programs built again from Debian's source: their list, and one of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from docs.evidence.draw.declared import EVIDENCE
from docs.evidence.draw.rebuilt import load_rebuilt
from firsttouch.catalog.experiment_files import load_experiment
from firsttouch.errors import BuildError, UserError
from firsttouch.progress import Reporter

_LISTED = {program.name: program for program in load_rebuilt(EVIDENCE / "rebuilt.toml")}


def test_each_has_a_script_that_runs_it() -> None:
    scripts = load_experiment("doubles").scripts
    for program in _LISTED.values():
        assert Path(program.path).name in scripts[program.name]


def test_a_mistake_is_named(tmp_path: Path) -> None:
    file = tmp_path / "rebuilt.toml"
    file.write_text('suite = "trixie"\n[[program]]\nname = "xz"\nsorce = "xz-utils"\n')
    with pytest.raises(UserError, match="source is missing"):
        load_rebuilt(file)


@pytest.mark.kernel
def test_a_program_has_lines_and_is_kept() -> None:
    built = _LISTED["bzip2"].obtain(Reporter())
    with built.open("rb") as file:
        assert ELFFile(file).has_dwarf_info(strict=True)
    written = built.stat().st_mtime_ns
    assert _LISTED["bzip2"].obtain(Reporter()).stat().st_mtime_ns == written


@pytest.mark.kernel
def test_a_build_that_fails_says_what_the_compiler_said(own_cache: Path) -> None:
    wrong = replace(_LISTED["bzip2"], build="echo no compiler >&2; false")
    with pytest.raises(BuildError, match="bzip2 failed to build") as error:
        wrong.obtain(Reporter())
    assert "no compiler" in error.value.detail
