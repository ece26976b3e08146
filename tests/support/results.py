# SPDX-License-Identifier: GPL-2.0
"""Results made by hand, for tests of what is derived from them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from firsttouch.catalog.experiments import Params
from firsttouch.lab.cells import Cell
from firsttouch.lab.results import Provenance, Result
from firsttouch.tables import Json
from firsttouch.vm.guest import Counts

POPULATE: Params = {"by": "ldadd", "page": "4k", "size": 1 << 30, "threads": 1}


def make_result(
    metrics: Mapping[str, float] | None = None,
    arm: str = "stock",
    *,
    experiment: str = "populate",
    params: Params = POPULATE,
    machine: str = "neoverse-n1",
    unavailable: Mapping[str, str] | None = None,
    regions: Sequence[Mapping[str, Json]] | None = None,
    not_modelled: Sequence[str] = (),
    profile: bool = False,
) -> Result:
    """Return what a cell came to whose command printed one line."""
    cell = Cell("6.12", arm, machine, experiment, params, profile=profile)
    line: dict[str, Json] = {"metrics": dict(metrics or {}), "unavailable": dict(unavailable or {})}
    counts = None if regions is None else Counts(tuple(regions), tuple(not_modelled))
    qemu = "QEMU emulator version 7.2"
    made = Provenance("6.12.1", qemu, "gcc 12", {"QEMU": "q" * 64}, "console=ttyAMA0",
                      ("/ftbench populate",), cell.command())  # fmt: skip
    return Result(f"key of {cell.title}", cell, (line,), counts, made)


def in_layouts(
    arm: str, of_layouts: Sequence[Mapping[str, float] | None], params: Params = POPULATE
) -> list[Result]:
    """Return what a cell came to in layout 0 and on, each with its metrics; None is left out."""
    results = []
    for layout, metrics in enumerate(of_layouts):
        if metrics is not None:
            result = make_result(metrics, arm, params=params)
            results.append(replace(result, cell=replace(result.cell, layout=layout)))
    return results


def make_region(
    changed: Mapping[str, Json] | None = None,
    *,
    caches: bool = True,
    kernel: Mapping[str, Json] | None = None,
) -> dict[str, Json]:
    """Return a region as the plugin writes it, where everything happened three times."""
    names = ("instructions", "dsb", "dc_zva", "dc_zva_unplaced", "untranslated_accesses", "ipi")
    mode: dict[str, Json] = {
        **dict.fromkeys(names, 0), "instructions": 3, "dsb": 3, "isb": 2,
        "exceptions_taken_sync": 3, "svc": 1,
    }  # fmt: skip
    if caches:
        level: dict[str, Json] = {"accesses": 3, "misses": 2, "writebacks": 0}
        mode |= {"l1d": level, "l2": level}
    return {
        "user": {**mode, **(changed or {})},
        "kernel": {**mode, **(kernel or {})},
        "tlbi": {"total": 4, "broadcast": 3, "by_kind": {"vae1is": 3, "vae1": 1}},
    }


# What a fault calls, each function with its instructions in make_profiled(); no count is
# that of another.
_FAULT = ("vectors", "do_page_fault", "handle_mm_fault", "clear_page")


def make_profiled(
    instructions: Sequence[int],
    arm: str = "stock",
    *,
    faults: int = 10,
    by: str = "store",
    not_modelled: Sequence[str] = (),
    dc_zva: int = 0,
) -> Result:
    """Return a profiled result, of a chain of calls whose functions execute `instructions`.

    The chain is user code, 7 instructions of it, then an exception, calls, and
    a tail call at its end. Each function has a miss of the L1D for each ten
    instructions, and a DSB.
    """
    region = make_region({"instructions": 7, "dc_zva": dc_zva})
    region["profile"] = make_profile(instructions)
    return make_result(
        {"page_faults": faults},
        arm,
        params={**POPULATE, "by": by, "size": faults << 12},
        regions=[region],
        not_modelled=not_modelled,
        profile=True,
    )


def make_profile(instructions: Sequence[int]) -> dict[str, Json]:
    """Return the counts by function of such a chain, as the plugin writes them."""
    names = _FAULT[: len(instructions)]
    entered = [2, *[0] * (len(names) - 2), 1]
    return {
        "function_counts": ["instructions", "dsb"],
        "functions": [
            ["user code", 0, 0],
            *([name, count, 1] for name, count in zip(names, instructions, strict=True)),
        ],
        "entered_by": ["call", "tail_call", "exception", "stack_switch"],
        "call_counts": ["instructions", "l1d_misses", "l2_misses"],
        "calls": [
            [0, 0, 0, 0, 0, 0],
            *(
                [row, row + 1, how, count, count // 10, 0]
                for row, (how, count) in enumerate(zip(entered, instructions, strict=True))
            ),
        ],
        "lost_arrivals": 0,
    }
