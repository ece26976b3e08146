# SPDX-License-Identifier: GPL-2.0
"""adding.md names every key that a file of the catalogue may have; its examples load."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import get_args

import pytest

from firsttouch.catalog.arms import load_arm
from firsttouch.catalog.experiments import load_experiment
from firsttouch.catalog.kernels import load_release, release_names
from firsttouch.catalog.machines import Policy, load_machine
from firsttouch.files import ARMS, EXPERIMENTS, MACHINES, REPOSITORY
from firsttouch.tables import Fields, names_in

_LOADERS: dict[str, tuple[Iterable[str], Callable[[str], object], int]] = {
    # The project's files together have every table, so each loader asks for all its keys.
    "A machine": (names_in(MACHINES), load_machine, 13),
    "An arm": (names_in(ARMS), load_arm, 9),
    "An experiment": (names_in(EXPERIMENTS), load_experiment, 32),
    "A release": (release_names(), load_release, 3),
}


def _code(heading: str) -> str:
    """Return all code of a section of docs/how-to/adding.md."""
    page = (REPOSITORY / "docs/how-to/adding.md").read_text()
    section = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    assert section, heading
    blocks = re.findall(r"^ *```.*?^ *```", section, flags=re.MULTILINE | re.DOTALL)
    return "\n".join(blocks + re.findall(r"`([^`\n]+)`", section))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The keys that loaders ask for by name, not those that authors choose."""
    keys: set[str] = set()
    for name in ("take", "strings", "choice", "table", "tables", "has"):
        method = getattr(Fields, name)

        def ask(
            table: Fields, key: str, *more: object, method: Callable[..., object] = method
        ) -> object:
            keys.add(key)
            return method(table, key, *more)

        monkeypatch.setattr(Fields, name, ask)
    return keys


@pytest.mark.parametrize("heading", _LOADERS)
def test_every_key_is_named_where_its_file_is_described(heading: str, asked: set[str]) -> None:
    names, load, least = _LOADERS[heading]
    for name in names:
        load(name)
    assert len(asked) >= least
    code = _code(heading)
    missing = {key for key in asked if not re.search(rf"(?<![\w-]){key}(?![\w-])", code)}
    assert not missing


def test_every_policy_that_a_cache_may_have_is_named() -> None:
    code = _code("A machine")
    assert not {word for word in get_args(Policy) if not re.search(rf"\b{word}\b", code)}


def test_the_examples_load(own_entries: Path) -> None:
    page = (REPOSITORY / "docs/how-to/adding.md").read_text()
    blocks = dict(
        re.findall(r"`(\w+/[\w-]+\.toml)`(?:(?!```).)*?```toml\n(.*?)```", page, flags=re.DOTALL)
    )
    # A part of the same file; those of its metrics and its disk are shown elsewhere.
    example = re.search(r"```toml\n(\[quick\]\n.*?)```", page, flags=re.DOTALL)
    assert example
    blocks["experiments/populate-threads.toml"] += f"\n{example[1]}"
    for name, text in blocks.items():
        (own_entries / name).write_text(text)
    assert load_machine("neoverse-v1").cpus[0].l1d.ways == 4
    assert load_arm("color-4").kernel.kind == "changed"
    assert load_experiment("populate-threads").quick
