# SPDX-License-Identifier: GPL-2.0
"""Real guests: a failure is an error that shows why, and all output arrives."""

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from firsttouch.building.host_tools import cross_compile
from firsttouch.building.programs import BENCH, INIT, PMU
from firsttouch.catalog.machines import load_machine
from firsttouch.errors import GuestError
from firsttouch.lab.outcomes import guest_outcome
from firsttouch.progress import Reporter
from firsttouch.vm.guest import Guest, Pmu
from firsttouch.vm.supervision import Done, run_guest

pytestmark = pytest.mark.kernel


@pytest.fixture
def guest(images: Callable[[str, bool], Path], reporter: Reporter) -> Callable[..., Guest]:
    def make(command: str, *boot: str) -> Guest:
        return Guest(
            images("6.12", False),
            INIT.obtain(reporter),
            load_machine("neoverse-n1"),
            boot,
            (command,),
            {"/ftbench": BENCH.obtain(reporter)},
        )

    return make


def _compiled(text: str, program: Path) -> Path:
    subprocess.run(
        [f"{cross_compile()}gcc", "-static", "-x", "c", "-o", program, "-"],
        input=text, text=True, check=True,
    )  # fmt: skip
    return program


@pytest.mark.parametrize("body", ["for (;;);", "for (;;) pause();"], ids=["busy", "asleep"])
def test_a_hang_fails_the_cell(guest: Callable[..., Guest], tmp_path: Path, body: str) -> None:
    text = f"#include <unistd.h>\nint main(void) {{ {body} }}\n"
    program = _compiled(text, tmp_path / "hang")
    hang = replace(guest("/hang"), files={"/hang": program})
    with pytest.raises(GuestError, match="printed nothing for 20 s"):
        run_guest(hang, tmp_path / "log", silence=20)


def test_a_command_that_fails_fails_the_cell_with_what_it_said(
    guest: Callable[..., Guest], tmp_path: Path
) -> None:
    asked = guest("/ftbench poplate")
    with pytest.raises(GuestError, match=r"command 0 .* status 2: ftbench: .*populate") as error:
        guest_outcome(asked, tmp_path / "log")
    assert any("populate" in line for line in error.value.detail)


_PROGRAM = r"""
#include <stdio.h>
#include <string.h>
int main(int count, char **words)
{
    const char *last = words[count - 1];

    if (count > 3)
        printf("{\"words\": %d, \"last\": \"%s\"}\n", count - 1, last);
    else if (!strcmp(last, "cut"))
        printf("{\"last line\": true}");
    return strcmp(last, "fail") ? 0 : 3;
}
"""


def test_each_command_has_its_own_output_however_it_ends(
    guest: Callable[..., Guest], tmp_path: Path
) -> None:
    """Without a final newline, with nothing, failed, of a hundred words; in paths with commas."""
    place = tmp_path / "a folder, with a comma"
    place.mkdir()
    program = _compiled(_PROGRAM, place / "says")
    many = " ".join(f"word{number}" for number in range(100))
    asked = replace(
        guest("/ftbench --list=json"),
        image=Path(shutil.copy(guest("").image, place / "Image")),
        commands=("/says cut", "/says fail", "/says nothing", f"/says {many}", "/says cut",
                  "/ftbench --list=json"),
        pmu=Pmu(Path(shutil.copy(PMU.obtain(Reporter()), place / "pmu.so")), caches=False),
        files={**guest("").files, "/says": program},
    )  # fmt: skip
    ended = run_guest(asked, place / "log")
    cut = Done(0, ('{"last line": true}',))
    hundred = Done(0, ('{"words": 100, "last": "word99"}',))
    assert ended.commands[:5] == (cut, Done(3, ()), Done(0, ()), hundred, cut)
    assert ended.commands[5].status == 0
    assert ended.commands[5].objects()[0]["program"] == "ftbench"
    assert ended.counts is not None
    assert ended.counts.regions == ()
