# SPDX-License-Identifier: GPL-2.0
"""Documents whose figures stand between markers, ``<!-- evidence: NAME -->`` and ``<!-- end -->``.

What stands between a pair is drawn; nobody writes it by hand.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping

from docs.evidence.draw.blocks import draw_block
from docs.evidence.draw.declared import Evidence
from firsttouch.analysis.dataset import Dataset
from firsttouch.errors import UserError, nearest
from firsttouch.output.html.files import figure_files

_MARKED = re.compile(r"(<!-- evidence: (\S+) -->)(.*?)(<!-- end -->)", re.DOTALL)
_BEGIN, _END = "<!-- evidence:", "<!-- end -->"


class Drawing:
    """The blocks of some evidence, each drawn once; raw results are read when they are needed.

    `others` draws blocks that are not of the laboratory's results, by name.
    """

    def __init__(
        self, evidence: Evidence, others: Mapping[str, Callable[[], str]] | None = None
    ) -> None:
        self.evidence = evidence
        self._others = others or {}
        self._dataset = functools.cache(evidence.dataset)
        self._drawn: dict[str, str] = {}

    def dataset(self, name: str) -> Dataset:
        """Return the dataset of a set."""
        return self._dataset(name)

    def block(self, name: str) -> str:
        """Return what stands between the markers that name a block."""
        if name not in self._drawn:
            self._drawn[name] = self._draw(name)
        return self._drawn[name]

    def _draw(self, name: str) -> str:
        if name in self._others:
            return self._others[name]()
        blocks = self.evidence.blocks
        if name not in blocks:
            names = [*blocks, *self._others]
            raise UserError(f"there is no evidence {name!r}: {nearest(name, names)}")
        datasets = {of: self.dataset(of) for of in blocks[name].sets}
        return draw_block(blocks[name], self.evidence, datasets)

    def pictures(self) -> dict[str, str]:
        """Return each declared figure: its file below the checkout, and its SVG."""
        return {
            f"{picture.folder}/{name}": text
            for picture in self.evidence.pictures
            for name, text in figure_files(
                self.dataset(picture.set).only([picture.experiment])
            ).items()
        }

    def document(self, text: str) -> str:
        """Return a document with each block as the raw results have it.

        Raises UserError for a marker without its other, and for a name that
        is not declared.
        """
        check_markers(text)
        return _MARKED.sub(lambda marked: f"{marked[1]}{self.block(marked[2])}{marked[4]}", text)


def check_markers(text: str) -> None:
    """Raise UserError unless each marker that begins a block has the one that ends it."""
    inside = ""
    for mark in re.findall(rf"{_BEGIN}[^>]*>|{_END}", text):
        if (mark == _END) == (not inside):
            raise UserError(
                f"{inside or mark} has no other marker: write {_BEGIN} NAME --> ... {_END}."
            )
        inside = "" if mark == _END else mark
    if inside:
        raise UserError(f"{inside} has no {_END} behind it.")


def names(text: str) -> Iterator[str]:
    """Return the names of the blocks that a document has."""
    return (marked[2] for marked in _MARKED.finditer(text))
