# SPDX-License-Identifier: GPL-2.0
"""`firsttouch try --reply`: what moved as a mail of 72 columns, and nothing that judges it."""

import shlex
from dataclasses import replace
from pathlib import Path

from firsttouch.analysis.changes import changes
from firsttouch.analysis.dataset import Dataset, make_dataset
from firsttouch.catalog.arms import Kernel, tried_arm
from firsttouch.catalog.experiments import load_catalog
from firsttouch.views.changes import reply
from tests.support.golden import Golden
from tests.support.results import POPULATE, make_profiled, make_result

_ARGV = ["try", "0001-mm-take-a-longer-path-through-the-fault.patch", "--boot", "quiet splash",
         "--reply", "--experiment", "populate", "--set", "page=4k"]  # fmt: skip
_PATCH = Path("/home/me/mails/0001-mm-take-a-longer-path-through-the-fault.patch")


def _dataset(name: str = "tried") -> Dataset:
    arm = tried_arm(name, 0, f"{_PATCH.name}, booted with quiet",
                    Kernel("stock", (_PATCH,)), ("quiet",))  # fmt: skip
    counts = {"page_faults": 1000, "instructions_kernel": 2_500_000, "tlbi": 0, "dsb": 40,
              "isb": 50, "l1d_misses": 7000}  # fmt: skip
    results = []
    for by, tried in (("store", 2_800_000), ("load-store", 2_300_000), ("swp", 2_500_000)):
        params = {**POPULATE, "by": by}
        for which, more in (
            ("stock", {}),
            ("again", {"isb": 51}),
            (name, {"instructions_kernel": tried, "tlbi": (tried > 2_500_000) * 1000, "isb": 51}),
        ):
            results.append(make_result({**counts, **more}, which, params=params))
    made = results[-1].provenance
    digests = {**made.digests, f"patch {_PATCH.name}": "0123456789abcdef" * 4}
    results[-1] = replace(results[-1], provenance=replace(made, digests=digests))
    catalog = load_catalog(["populate"], ["neoverse-n1"], ["stock", "again"])
    return make_dataset(results, catalog.adding([arm]))


def _reply(name: str = "tried") -> str:
    dataset = _dataset(name)
    results = [make_profiled([100, 200, 300, more], arm)
               for arm, more in (("stock", 400), (name, 700))]  # fmt: skip
    profiled = make_dataset(results, dataset.catalog).cases
    return reply(dataset, changes(dataset), {name: profiled}, _ARGV)


def test_the_mail_has_figures_their_command_and_their_tools(golden: Golden) -> None:
    text = _reply()
    assert max(map(len, text.splitlines())) <= 72
    assert not any(line.endswith(" ") for line in text.splitlines())
    golden(text)


def test_its_command_can_be_pasted() -> None:
    _, _, after = _reply().partition("To repeat it:\n")
    command, _, _ = after.partition("\n\n")
    asked = [word for word in _ARGV if word != "--reply"]
    assert shlex.split(command.replace("\\\n", "")) == ["firsttouch", *asked]
