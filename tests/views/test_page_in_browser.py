# SPDX-License-Identifier: GPL-2.0
"""The report in a browser: on a phone and a desk, by day and night; screenshots to look at."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from firsttouch.files import REPOSITORY
from firsttouch.views.html.page import write_report
from tests.support import made_results
from tests.support.contrast import contrast
from tests.support.made_results import Made

pytestmark = pytest.mark.long

_FLAGS = (
    "--headless",
    "--no-sandbox",  # the tests may run as root
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
    "--remote-debugging-pipe",
)

Message = dict[str, Any]


class Browser:
    """One page of a running browser."""

    def __init__(self, commands: IO[bytes], answers: IO[bytes]) -> None:
        self._commands = commands
        self._answers = answers
        self._received = b""
        self._number = 0
        self._session: str | None = None
        self._unread: list[Message] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        self.call("Page.enable")

    def call(self, method: str, **params: Any) -> Message:
        """Return the answer to a command of the DevTools protocol."""
        self._number += 1
        message: Message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        self._commands.write(json.dumps(message).encode() + b"\0")
        self._commands.flush()
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result = answer["result"]
                assert isinstance(result, dict)
                return result
            self._unread.append(answer)

    def _read(self) -> Message:
        while b"\0" not in self._received:
            more = os.read(self._answers.fileno(), 1 << 20)
            assert more, "the browser has ended"
            self._received += more
        text, _, self._received = self._received.partition(b"\0")
        message: Message = json.loads(text)
        return message

    def open(self, file: Path, width: int, *, dark: bool = False, media: str = "") -> None:
        """Show `file` in a window `width` pixels wide, as a phone or a desktop would."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=900, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self._unread.clear()
        self.call("Page.navigate", url=file.resolve().as_uri())
        while not any(m.get("method") == "Page.loadEventFired" for m in self._unread):
            self._unread.append(self._read())

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def screenshot(self, file: Path) -> None:
        """Write the whole page as a PNG."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        answer = self.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(answer["data"]))


@contextmanager
def browser() -> Iterator[Browser]:
    """Run a browser with a profile of its own for as long as the context lasts."""
    with tempfile.TemporaryDirectory(prefix="firsttouch-browser-", ignore_cleanup_errors=True) as d:
        pipes = [str(Path(d, name)) for name in ("commands", "answers")]
        for pipe in pipes:
            os.mkfifo(pipe)
        # The browser reads descriptor 3 and writes descriptor 4.
        process = subprocess.Popen(
            ["sh", "-c", 'i=$1 o=$2; shift 2; exec chromium "$@" 3<"$i" 4>"$o"', "sh", *pipes,
             *_FLAGS, f"--user-data-dir={d}/profile"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            with Path(pipes[0]).open("wb") as commands, Path(pipes[1]).open("rb") as answers:
                yield Browser(commands, answers)
        finally:
            process.terminate()
            process.wait()


SCREENS = [(390, False), (390, True), (1280, False), (1280, True)]
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
    """The report of every experiment, and of more arms than fit next to each other."""
    home = tmp_path_factory.mktemp("report")
    folder = made_results.experiments(home)
    results = made_results.plan(folder)
    arms = ("stock", "off", "color", "color-l2", "rmw", "tiny", "tiny-on", "debian", "on", "all-on")
    results += [
        Made("many-arms", {"size": size}, arm, {"boot_us": 10**number * size})
        for number, arm in enumerate(arms)
        for size in (1 << 20, 1 << 24, 1 << 30)
    ]
    (folder / "many-arms.toml").write_text(
        'title = "Many arms"\nquestion = "?"\n[parameters]\nsize = [1, 2]\n'
        '[[metrics]]\nname = "boot_us"\nunit = "us"\nshown = true\n'
    )
    return write_report(made_results.dataset(home / "out", results, folder), home)


@pytest.mark.parametrize(("width", "dark"), SCREENS)
def test_report_on_a_screen(page: Browser, report: Path, width: int, dark: bool) -> None:
    page.open(report, width, dark=dark)
    KEPT.mkdir(exist_ok=True)
    page.screenshot(KEPT / f"report-{width}-{'dark' if dark else 'light'}.png")
    # Folded content must fit as well.
    page.evaluate(_UNFOLD)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(_WIDER) == []
    pairs = {tuple(pair) for pair in page.evaluate(_COLORS)}
    # The contrast that WCAG 2 asks of text.
    assert len(pairs) > 3 and all(contrast(ink, paper) >= 4.5 for ink, paper in pairs)
    verdicts = page.evaluate(
        "[...document.querySelectorAll('.verdict')].map(verdict => verdict.innerText.trim())"
    )
    # Their colour is not their only sign.
    assert {"✓ reproduced", "- cannot be judged by counts"} <= set(verdicts)
    pictures = page.evaluate(_BOXES)
    assert len(pictures) == page.evaluate("document.querySelectorAll('figure').length") > 15
    assert len({picture["name"] for picture in pictures}) == len(pictures)
    for picture in pictures:
        _check_labels(picture)


def _check_labels(picture: dict[str, Any]) -> None:
    """All labels of a picture are large enough, inside it, and none lies over another."""
    outer, texts = picture["svg"], picture["texts"]
    for index, text in enumerate(texts):
        assert text["height"] >= 11, text
        assert outer["left"] - 1 <= text["left"] and text["right"] <= outer["right"] + 1, text
        assert outer["top"] - 1 <= text["top"] and text["bottom"] <= outer["bottom"] + 1, text
        over = [other["text"] for other in texts[index + 1 :] if _overlap(text, other)]
        assert over == [], (picture["name"], text["text"])


def _overlap(first: dict[str, Any], second: dict[str, Any]) -> bool:
    """Tell whether two boxes share more than the pixel that lines of text may."""
    return bool(
        min(first["right"], second["right"]) - max(first["left"], second["left"]) > 1
        and min(first["bottom"], second["bottom"]) - max(first["top"], second["top"]) > 3
    )


def test_light_dark_and_paper(page: Browser, report: Path) -> None:
    papers, marks = [], []
    for dark, media in ((False, ""), (True, ""), (True, "print")):
        page.open(report, 794, dark=dark, media=media)
        papers.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        marks.append(page.evaluate("getComputedStyle(document.querySelector('.m-1')).stroke"))
    assert papers[0] == papers[2] != papers[1]
    assert marks[0] == marks[2] != marks[1]
