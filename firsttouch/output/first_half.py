# SPDX-License-Identifier: GPL-2.0
"""The first half of the answer: what a first touch costs on the kernel that Debian ships."""

from __future__ import annotations

from rich.console import Console

from firsttouch.analysis.dataset import Dataset
from firsttouch.catalog.arms import SHIPPED
from firsttouch.catalog.experiments import Params
from firsttouch.output.plain import heading, plain, plain_table, print_table
from firsttouch.quantities import format_count, format_ratio

_PAGE = 4096
# The accesses: their names, and the experiments and parameters that measure them.
_ACCESSES: tuple[tuple[str, str, Params], ...] = (
    ("a store", "populate", {"by": "store", "page": "4k"}),
    ("a read", "read-fault", {}),
    ("a load, then a store", "populate", {"by": "load-store", "page": "4k"}),
    ("an atomic add", "populate", {"by": "ldadd", "page": "4k"}),
)
_COUNTS = {
    "page_faults": ("faults", format_ratio),
    "tlbi": ("TLBI", format_ratio),
    "instructions_kernel": ("kernel instructions", format_count),
}


def print_first_half(dataset: Dataset, rest: str, console: Console) -> None:
    """Print what each access costs per page of 4 KiB on Debian's kernel.

    `rest` says where the second half of the answer comes from.
    """
    for platform in dataset.platforms():
        console.print(
            heading(
                "The first half of the answer: the first touch of a page of 4 KiB",
                f"Debian's own kernel {platform}",
            ),
            soft_wrap=True,
        )
        table = plain_table(["per page"], [name for name, _ in _COUNTS.values()])
        for words, experiment, params in _ACCESSES:
            for case in dataset.of(platform, experiment):
                pages = case.number("size") / _PAGE
                if params.items() <= case.params.items() and pages:
                    values = (case.value(SHIPPED, metric) for metric in _COUNTS)
                    table.add_row(
                        plain(words),
                        *(
                            plain("-" if value is None else shown(value / pages))
                            for value, (_, shown) in zip(values, _COUNTS.values(), strict=True)
                        ),
                    )
        print_table(table, console)
    console.print(plain(rest), soft_wrap=True)
