# SPDX-License-Identifier: GPL-2.0
"""Tables on the terminal, as Markdown and as HTML: whole, plain, with their command; numbers."""

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from firsttouch.analysis.dataset import make_dataset
from firsttouch.catalog.experiments import load_catalog
from firsttouch.files import EXPERIMENTS
from firsttouch.quantities import format_change, format_number_of, format_value
from firsttouch.tables import Fields, Json
from firsttouch.views.answers import print_answers
from firsttouch.views.comparison import compare, print_comparison
from firsttouch.views.html.svg import format_compact
from firsttouch.views.rows import print_dataset, summary
from firsttouch.views.tables import Table, as_csv, as_html, markdown, print_table
from tests.support import made_results
from tests.support.made_results import Made
from tests.support.results import in_layouts


def _printed(print_: Callable[[Console], None], width: int = 100) -> str:
    sink = io.StringIO()
    print_(Console(file=sink, width=width, highlight=False))
    return sink.getvalue()


_TABLE = Table(
    "Title", ("cell", "metric", "stock", "change", "verdict"),
    [("one", "page_faults", "1,234", "-50.00 %", "reproduced, holds in 3 of 4"),
     ("one", "tlbi", "5", "", ""), ("a|b<", "tlbi", "6", "", "not reproduced")],
    "A note.", names=2, more=1,
)  # fmt: skip


def test_four_printers_of_one_table() -> None:
    assert _printed(lambda console: print_table(_TABLE, console)).splitlines() == [
        "Title",
        "cell  metric       stock    change  verdict",
        "one   page_faults  1,234  -50.00 %  reproduced, holds in 3 of 4",
        "      tlbi             5",
        "a|b<  tlbi             6            not reproduced",
        "A note.",
    ]
    # Too narrow for a column of cells, then for a table.
    assert _printed(lambda console: print_table(_TABLE, console), 58).splitlines()[2:4] == [
        "one", "  page_faults 1,234 -50.00 % reproduced, holds in 3 of 4",
    ]  # fmt: skip
    assert _printed(lambda console: print_table(_TABLE, console), 40).splitlines()[1:4] == [
        "one", "  page_faults", "    stock 1,234  change -50.00 %",
    ]  # fmt: skip
    assert list(markdown(_TABLE))[1:] == [
        "| --- | --- | ---: | ---: | --- |",
        "| one | page_faults | 1,234 | -50.00 % | reproduced, holds in 3 of 4 |",
        "| one | tlbi | 5 |  |  |",
        "| a\\|b&lt; | tlbi | 6 |  | not reproduced |",
    ]
    assert as_csv(_TABLE).splitlines()[2] == "one,tlbi,5,,"
    page = as_html(_TABLE)
    assert '<td data-label="metric">page_<wbr>faults</td>' in page and "a|b&lt;" in page
    assert 'class="verdict v-not-reproduced"><span><span aria-hidden="true">✗</span> not' in page
    assert _TABLE.most(1).note == "and 2 more rows"


def test_the_spread_over_colours_of_each_machine_and_none_of_an_arm_that_lacks_one(
    tmp_path: Path,
) -> None:
    results = [
        Made("zero-conflict", {"level": "l1d", "hot_color": color, "rounds": 1000}, arm,
             {"l1d_misses": misses * (color + 1)}, machine=machine)
        for machine in ("neoverse-n1", "thunderx2")
        for arm, misses, colors in (("stock", 9000, 2), ("color", 4500, 2), ("on", 1, 1))
        for color in range(colors)
    ]  # fmt: skip
    dataset = made_results.dataset(tmp_path, results)
    text = _printed(lambda console: print_dataset(dataset, console))
    _, _, spread = text.partition("Misses per round")
    lines = [" ".join(line.split()) for line in spread.splitlines()]
    assert lines[1:4] == [
        "machine level colours stock color",
        "neoverse-n1 L1D 2 13.50 (18.00) 6.75 (9.00)",
        "thunderx2 L1D 2 13.50 (18.00) 6.75 (9.00)",
    ]


@pytest.mark.parametrize("name", ["[bold]", "[/red]", "a\\", "\x1b[31mred", "two\nlines"])
def test_a_name_of_others_is_printed_as_it_is_and_ends_nothing(tmp_path: Path, name: str) -> None:
    results = [
        replace(made, machine=name, qemu=name, missing={"tlbi": name},
                params={**made.params, "by": name},
                arm=name if made.arm == "on" else made.arm)
        for made in made_results.plan(EXPERIMENTS, ["populate"], by="store")
    ]  # fmt: skip
    dataset = made_results.dataset(tmp_path / "a", results)
    changed = [replace(made, qemu=f"{name} 2", machine=f"{name} 2") for made in results]
    other = made_results.dataset(tmp_path / "b", changed)

    def print_(console: Console) -> None:
        print_dataset(dataset, console)
        print_answers(dataset, console)
        print_comparison(compare(dataset, other), console, name, name)

    text = _printed(print_)
    assert "\x1b" not in text
    seen = name.replace("\x1b", "\N{REPLACEMENT CHARACTER}")
    assert seen.replace("\n", "\N{REPLACEMENT CHARACTER}") in text


def test_the_summary_has_the_distribution_over_layouts_and_none_of_one() -> None:
    catalog = load_catalog(["populate"], ["neoverse-n1"], ["stock", "on"])
    of_layouts = {"stock": [200] * 4, "on": [100, 100, 100, 180]}

    def summarized(layouts: int) -> dict[str, Json]:
        results = [
            result
            for arm, faults in of_layouts.items()
            for result in in_layouts(arm, [{"page_faults": n} for n in faults[:layouts]])
        ]
        (row,) = Fields("", summary(make_dataset(results, catalog))).tables("rows")
        return row.rest()

    row = summarized(4)
    assert row["layouts"] == 4
    assert row["distribution"] == {
        "change_percent": {"minimum": -50, "median": -50, "maximum": -10},
        "arms": {
            "stock": {"minimum": 200, "median": 200, "maximum": 200},
            "on": {"minimum": 100, "median": 100, "maximum": 180},
        },
        "holds_in": [3, 4],
    }
    assert "distribution" not in (alone := summarized(1)) and alone["layouts"] == 1


@pytest.mark.parametrize(
    ("printed", "text"),
    [
        (format_change(None), "-"), (format_change(-0.004), "0.00 %"),
        (format_change(-50.0), "-50.00 %"),
        (format_number_of(1, "cells"), "1 cell"), (format_number_of(0, "cells"), "0 cells"),
        (format_value(None), "-"), (format_value(1234567), "1,234,567"), (format_value(2.5), "2.5"),
        (format_value(1_234_567, "ns"), "1.23 ms"), (format_compact(3.2e9), "3.2 G"),
    ],
)  # fmt: skip
def test_values_in_words(printed: str, text: str) -> None:
    assert printed == text
