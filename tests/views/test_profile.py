# SPDX-License-Identifier: GPL-2.0
"""Profiles as a table, as folded stacks and as a flame graph."""

import io
import xml.etree.ElementTree as ET

import pytest
from rich.console import Console

from firsttouch.analysis.dataset import Dataset, make_dataset
from firsttouch.catalog.experiments import load_catalog
from firsttouch.views.html.page import figure_files
from firsttouch.views.profile import folded, print_profile
from tests.support.results import make_profiled

_SVG = "{http://www.w3.org/2000/svg}"
STOCK, ON = [100, 200, 300, 400], [100, 200, 360, 390]


def _dataset(*arms: str) -> Dataset:
    made = {"stock": STOCK, "on": ON}
    catalog = load_catalog(["populate"], ["neoverse-n1"], ["stock", "on"])
    return make_dataset([make_profiled(made[arm], arm) for arm in arms], catalog)


@pytest.fixture(scope="module")
def flame() -> str:
    files = figure_files(_dataset("stock", "on"))
    (name,) = (name for name in files if name.startswith("profile-"))
    assert name == "profile-populate-store-4k-size-40-kib-threads-1-6.12-on-neoverse-n1.svg"
    return files[name]


def _printed(dataset: Dataset, count: str = "instructions", *, whole: bool = True) -> list[str]:
    console = Console(file=io.StringIO(), width=100)
    print_profile(dataset.cases[0], count, console, whole=whole)
    assert isinstance(console.file, io.StringIO)
    return [" ".join(line.split()) for line in console.file.getvalue().splitlines()]


def test_the_table_has_all_arms_and_the_change() -> None:
    lines = _printed(_dataset("stock", "on"))
    assert lines[1] == "instructions per fault: 10 faults on stock"
    assert lines[2:6] == [
        "function stock on change",
        "the kernel, all functions 100.00 105.00 +5.00",
        "user code 0.70 0.70 0",
        "handle_mm_fault 30.00 36.00 +6.00",
    ]
    assert len(lines) == 5 + len(STOCK)


def test_folded_stacks_sum_up_to_all_instructions() -> None:
    lines = folded(_dataset("stock", "on")).splitlines()
    assert "stock;user code 7" in lines
    assert (
        "on;user code;vectors [exception];do_page_fault;handle_mm_fault;clear_page [tail call] 390"
        in lines
    )
    assert sum(int(line.rpartition(" ")[2]) for line in lines) == 2 * 7 + sum(STOCK) + sum(ON)


def _frames(text: str) -> dict[str, ET.Element]:
    """Return the rectangles with a tip, by the function in it."""
    frames = {}
    for rectangle in ET.fromstring(text).iter(f"{_SVG}rect"):
        tip = rectangle.findtext(f"{_SVG}title")
        if tip:
            frames[tip.partition(":")[0]] = rectangle
    return frames


def test_a_frame_is_as_wide_as_the_larger_of_two_arms(flame: str) -> None:
    frames = _frames(flame)
    assert list(frames) == [
        "kernel", "user code", "vectors [exception]", "do_page_fault", "handle_mm_fault",
        "clear_page [tail call]",
    ]  # fmt: skip
    whole = float(frames["kernel"].attrib["width"])
    # 10, 20, 36 and 40 instructions per fault
    assert float(frames["handle_mm_fault"].attrib["width"]) == pytest.approx(whole * 76 / 106, 0.01)
    assert float(frames["clear_page [tail call]"].attrib["width"]) == pytest.approx(
        whole * 40 / 106, 0.01
    )
    rows = [float(frame.attrib["y"]) for frame in frames.values()]
    assert rows == sorted(set(rows))


def test_a_frame_has_the_colour_of_its_own_change_and_says_it(flame: str) -> None:
    frames = _frames(flame)
    kinds = {name: frame.attrib["class"].split() for name, frame in frames.items()}
    assert kinds["handle_mm_fault"] == ["flame", "more"]
    assert kinds["clear_page [tail call]"] == ["flame", "less"]
    assert kinds["do_page_fault"] == ["flame"]
    assert frames["handle_mm_fault"].findtext(f"{_SVG}title") == (
        "handle_mm_fault: with its calls 70.00 on stock, 75.00 on on, +5.00; "
        "itself 30.00 on stock, 36.00 on on, +6.00"
    )
    labels = [text.text for text in ET.fromstring(flame).iter(f"{_SVG}text")]
    assert "clear_page [tail call] -1.00" in labels
