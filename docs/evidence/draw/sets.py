# SPDX-License-Identifier: GPL-2.0
"""docs/evidence/sets.toml: what is measured for the evidence, and what its tables show."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from firsttouch.analysis.dataset import Dataset, read_dataset
from firsttouch.errors import UserError
from firsttouch.files import REPOSITORY
from firsttouch.tables import read, read_toml

# In a checkout; an installed package has no evidence.
EVIDENCE = REPOSITORY / "docs/evidence"
SETS = "sets.toml"


@dataclass(frozen=True)
class ResultSet:
    """A request to the laboratory on some releases: NAME-RELEASE.jsonl.xz, and NAME.md of all.

    `measure` is the command after `firsttouch`, without its release; `options` has more of it
    for some releases. `commit` is the project's commit that was measured. The page shows the
    `metrics` of each experiment, with commas between them. With `changes` it has other arms than
    the first in per cent of it, the cases with the most of the first metric, and the sum of all.
    """

    name: str
    releases: tuple[str, ...]
    commit: str
    measure: str
    options: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, str] = field(default_factory=dict)
    changes: bool = False

    def file(self, release: str, folder: Path = EVIDENCE) -> Path:
        return folder / f"{self.name}-{release}.jsonl.xz"

    def arguments(self, release: str) -> list[str]:
        command, *options = shlex.split(self.measure)
        more = shlex.split(self.options.get(release, ""))
        return [command, "--release", release, *options, *more]

    def dataset(self, release: str, folder: Path = EVIDENCE) -> Dataset:
        """Return the results on a release; UserError if they can't be read completely."""
        dataset = read_dataset(self.file(release, folder))
        if dataset.notes:
            raise UserError(dataset.notes[0])
        return dataset


def load_sets(folder: Path = EVIDENCE) -> dict[str, ResultSet]:
    """Return the sets of `folder`/sets.toml by name; UserError, which names the key, if wrong."""
    top = read_toml(folder / SETS)
    sets = [read(table, ResultSet) for table in top.tables("set")]
    top.done()
    return {each.name: each for each in sets}
