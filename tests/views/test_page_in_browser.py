# SPDX-License-Identifier: GPL-2.0
"""The report as a reader opens it: in a browser, on a phone and a desk, by day, night and on paper.

Screenshots are kept in test-results/ for people to look at.
"""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firsttouch.files import REPOSITORY
from firsttouch.views.html.page import write_report
from tests.support import made_results
from tests.support.browser import Browser, browser
from tests.support.contrast import contrast, luminance
from tests.support.made_results import Made

pytestmark = pytest.mark.long

SCREENS = [(width, dark) for width in (390, 768, 1280) for dark in (False, True)]
KEPT = REPOSITORY / "test-results"

_UNFOLD = "document.querySelectorAll('details').forEach(each => { each.open = true; })"

# Boxes of what is seen, in pixels of the page.
_BOXES = """(() => {
  const box = element => {
    const {left, right, top, bottom, height} = element.getBoundingClientRect();
    return {left, right, top, bottom, height, text: element.textContent};
  };
  const seen = element => element.getClientRects().length > 0;
  return [...document.querySelectorAll('svg')].filter(seen).map(svg => ({
    svg: box(svg),
    name: svg.getAttribute('aria-label'),
    texts: [...svg.querySelectorAll('text')].map(box),
  }));
})()"""

_WIDER = """[...document.querySelectorAll('body *')]
  .filter(element => !element.parentElement.closest('.scroll'))
  .filter(element => element.getBoundingClientRect().right > innerWidth + 0.5)
  .map(element => element.tagName + ' ' + element.textContent.slice(0, 40))"""

_COLORS = """[...document.querySelectorAll(
  'p, li, th, td, code, summary, figcaption, h1, h2, h3, span')]
  .filter(element => element.getClientRects().length > 0)
  .map(element => {
    let behind = element;
    while (getComputedStyle(behind).backgroundColor === 'rgba(0, 0, 0, 0)')
      behind = behind.parentElement;
    return [getComputedStyle(element).color, getComputedStyle(behind).backgroundColor];
  })"""


@pytest.fixture(scope="module")
def page() -> Iterator[Browser]:
    assert shutil.which("chromium"), "chromium is missing: run ./setup as root"
    with browser() as running:
        yield running


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of every experiment on two releases, with something left out to be noted."""
    home = tmp_path_factory.mktemp("report")
    folder = made_results.experiments(home)
    results = made_results.plan(folder)
    results += [
        replace(made, release="7.3", kernel_version="7.3.1")
        for made in made_results.plan(folder, ["boot", "read-fault"])
    ]
    results.append(replace(results[0], experiment="fork-cost"))
    # More arms than fit beside each other, one of them without a file.
    traces = (
        "stock",
        "off",
        "color",
        "color-l2",
        "rmw",
        "tiny",
        "tiny-on",
        "debian",
        "on",
        "of-my-own",
    )
    results += [
        Made("many-arms", {"size": size}, arm, {"boot_us": 10**number * size, "tlbi": number})
        for number, arm in enumerate(traces)
        for size in (1 << 20, 1 << 24, 1 << 30)
    ]
    (folder / "many-arms.toml").write_text(
        'title = "Many arms"\nquestion = "?"\n[parameters]\nsize = [1, 2]\n'
        '[[metrics]]\nname = "boot_us"\nunit = "us"\nshown = true\n'
        '[[metrics]]\nname = "tlbi"\nunit = "instructions"\nshown = true\n'
    )
    dataset = made_results.dataset(home / "out", results, folder)
    assert len(dataset.notes) == 1
    return write_report(dataset, home)


@pytest.fixture(
    scope="module", params=SCREENS, ids=lambda s: f"{s[0]}-{'dark' if s[1] else 'light'}"
)
def screen(request: pytest.FixtureRequest, page: Browser, report: Path) -> Browser:
    """The report on one screen, and its screenshot kept."""
    width, dark = request.param
    page.requests.clear()
    page.complaints.clear()
    page.open(report, width, dark=dark)
    KEPT.mkdir(exist_ok=True)
    page.screenshot(KEPT / f"report-{width}-{'dark' if dark else 'light'}.png")
    # Folded content must fit as well.
    page.evaluate(_UNFOLD)
    return page


def test_nothing_is_complained_of_or_asked_for(screen: Browser, report: Path) -> None:
    assert screen.complaints == []
    assert [url for url in screen.requests if not url.startswith("data:")] == [report.as_uri()]


def test_nothing_is_wider_than_the_screen(screen: Browser) -> None:
    assert screen.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert screen.evaluate(_WIDER) == []


def test_each_picture_is_shown_once_with_its_alternative(screen: Browser) -> None:
    shown = screen.evaluate(_BOXES)
    assert len(shown) == screen.evaluate("document.querySelectorAll('figure').length") > 15
    assert all(picture["name"] for picture in shown)
    assert len({picture["name"] for picture in shown}) == len(shown)
    assert screen.evaluate("[...document.images].every(image => image.alt)")


def test_the_pictures_labels_can_be_read(screen: Browser) -> None:
    for picture in screen.evaluate(_BOXES):
        outer = picture["svg"]
        for text in picture["texts"]:
            assert text["height"] >= 11, text
            where = (picture["name"], text["text"])
            assert outer["left"] - 1 <= text["left"] and text["right"] <= outer["right"] + 1, where
            assert outer["top"] - 1 <= text["top"] and text["bottom"] <= outer["bottom"] + 1, text


def test_no_label_lies_over_another(screen: Browser) -> None:
    over = [
        (picture["name"], label["text"], two["text"])
        for picture in screen.evaluate(_BOXES)
        for index, label in enumerate(picture["texts"])
        for two in picture["texts"][index + 1 :]
        if _overlap(label, two)
    ]
    assert over == []


def _overlap(first: dict[str, Any], second: dict[str, Any]) -> bool:
    """Tell whether two boxes share more than the pixel that lines of text may."""
    return bool(
        min(first["right"], second["right"]) - max(first["left"], second["left"]) > 1
        and min(first["bottom"], second["bottom"]) - max(first["top"], second["top"]) > 3
    )


def test_text_stands_out_from_its_ground(screen: Browser) -> None:
    """By the contrast that WCAG 2 asks of text, 4.5 to 1."""
    pairs = {tuple(pair) for pair in screen.evaluate(_COLORS)}
    assert len(pairs) > 3
    for ink, paper in pairs:
        assert contrast(ink, paper) >= 4.5, (ink, paper)


def test_light_and_dark_are_two_papers(page: Browser, report: Path) -> None:
    papers, marks = [], []
    for dark in (False, True):
        page.open(report, 1280, dark=dark)
        papers.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        marks.append(page.evaluate("getComputedStyle(document.querySelector('.m-1')).stroke"))
    # The arms' marks have a colour for each.
    assert marks[0] != marks[1]
    assert luminance(papers[0]) > 0.9
    assert luminance(papers[1]) < 0.1


def test_on_paper_the_pictures_are_wide_and_the_ink_is_dark(page: Browser, report: Path) -> None:
    page.open(report, 794, dark=True, media="print")
    assert luminance(page.evaluate("getComputedStyle(document.body).backgroundColor")) > 0.9
    figures = page.evaluate("document.querySelectorAll('figure').length")
    assert len(page.evaluate(_BOXES)) == figures
    assert page.evaluate(
        "[...document.querySelectorAll('.wide')].every(picture => picture.offsetHeight > 0)"
    )
    KEPT.mkdir(exist_ok=True)
    pdf = page.pdf()
    assert pdf.startswith(b"%PDF")
    (KEPT / "report.pdf").write_bytes(pdf)


def test_the_colour_of_a_verdict_is_not_its_only_sign(page: Browser, report: Path) -> None:
    page.open(report, 1280)
    page.evaluate(_UNFOLD)
    verdicts = page.evaluate(
        "[...document.querySelectorAll('.verdict')].map(verdict => verdict.innerText.trim())"
    )
    met = {"✓ reproduced", "- cannot be judged by counts"}
    assert met <= set(verdicts) <= {*met, "▲ exceeded", "✗ not reproduced"}
