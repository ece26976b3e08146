# SPDX-License-Identifier: GPL-2.0
"""Stored evidence in every view, and recordings as trace.json, compared word by word.

`make golden` writes the expected texts in tests/data/golden again. The recordings are of programs
of tests/trace, compiled in /opt/corpus by `gcc -g1 -O2 -pthread -Wl,-z,noseparate-code` and run as
root under `firsttouch trace --no-survey`, all but known and jit with --no-call-chains.
"""

import io
import json
import os
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest
from rich.console import Console

from docs.evidence.draw.pictures import recorded
from firsttouch.analysis.dataset import Dataset, read_dataset
from firsttouch.cli.main import main
from firsttouch.files import REPOSITORY
from firsttouch.trace.sites import trace_document
from firsttouch.views.answers import print_answers
from firsttouch.views.html.page import write_report
from firsttouch.views.rows import print_dataset
from tests.support.golden import Golden

_EVIDENCE = REPOSITORY / "docs/evidence"
_RECORDINGS = REPOSITORY / "tests/data/trace"

# Which sets are shown in which views; together the sets have every kind of table and figure.
_SHOWN = {
    "default-6.12": "txt md page",
    "configuration-stores-6.12": "txt",
    "doubles-arm64-6.12": "page",
    "functions-stores-6.12": "txt page",
    "layouts-ldadd-6.12": "txt md page",
    "machines-reads-6.12": "txt md page",
    "tags-6.12": "csv",
}
_COMPARED = [("default-6.12", "default-7.3"), ("layouts-ldadd-6.12", "layouts-ldadd-7.3")]


@pytest.mark.parametrize(
    ("name", "view"), [(name, view) for name, views in _SHOWN.items() for view in views.split()]
)
def test_evidence_in_each_view(
    golden: Golden, capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, view: str
) -> None:
    file = _EVIDENCE / f"{name}.jsonl.xz"
    if view in _DRAWN:
        text = _DRAWN[view](read_dataset(file), tmp_path)
    else:
        assert main(["export", str(file), "--format", view]) == 0
        text = capsys.readouterr().out
    golden(text, f"{name}.{view}")


def _on_terminal(dataset: Dataset, _: Path) -> str:
    console = Console(file=io.StringIO(), width=100, highlight=False)
    print_answers(dataset, console)
    print_dataset(dataset, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def _on_page(dataset: Dataset, folder: Path) -> str:
    """Return the text of the page, a line for each block; what is folded away is in the tables."""
    page = write_report(dataset, folder).read_text()
    text = re.sub(r"<(style|details|defs)\b.*?</\1>|<wbr>", "", page, flags=re.S)
    text = re.sub(r"<(?!/?(?:span|b|i|em|strong|code|a|tspan|td|th)\b)[^>]*>", "\n", text)
    lines = (
        " ".join(unescape(re.sub(r"<[^>]*>", " ", line)).split()) for line in text.splitlines()
    )
    return "\n".join(line for line in lines if line)


_DRAWN: dict[str, Callable[[Dataset, Path], str]] = {"txt": _on_terminal, "page": _on_page}


@pytest.mark.parametrize(("first", "second"), _COMPARED, ids=lambda name: name)
def test_two_sets_side_by_side(
    golden: Golden, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    first: str, second: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(_EVIDENCE)
    monkeypatch.delenv("COLUMNS", raising=False)
    main(["compare", f"{first}.jsonl.xz", f"{second}.jsonl.xz"])
    golden(capsys.readouterr().out, f"{first}.compared")


@pytest.mark.parametrize(
    "name", sorted(file.name.split(".")[0] for file in _RECORDINGS.glob("*.data.xz"))
)
def test_recordings_as_documents(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    # What a host can apply differs.
    monkeypatch.setattr("os.uname", lambda: os.uname_result(("",) * 5))
    reading = recorded(name, tmp_path)
    document = json.loads(trace_document(reading.trace, reading.sentences))
    golden("\n".join(_lines(document)), f"{name}.json")


def _lines(document: dict[str, object]) -> list[str]:
    """Return a line for each entry, and one for each element of its lists."""
    return [
        f"{key}: {json.dumps(each)}"
        for key, value in document.items()
        for each in (value if isinstance(value, list) else [value])
    ]
