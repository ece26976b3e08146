# SPDX-License-Identifier: GPL-2.0
"""The answer in three sentences, made from the results. They also say what was not measured."""

from __future__ import annotations

from collections.abc import Iterable

from firsttouch.analysis.cache_statistics import Spread, running, sweeps
from firsttouch.analysis.cases import Case, Platform
from firsttouch.analysis.dataset import Dataset
from firsttouch.analysis.published import PublishedFigure, count_verdicts
from firsttouch.analysis.verdicts import change_percent
from firsttouch.catalog.arms import BASE
from firsttouch.catalog.experiments import Params
from firsttouch.quantities import format_change, format_count, format_ratio, format_size

# Accesses that gain nothing: their name, and the experiment and parameters that measure them.
_WITHOUT_GAIN: tuple[tuple[str, str, Params], ...] = (
    ("a plain store", "populate", {"by": "store", "page": "4k"}),
    ("a plain read", "read-fault", {}),
)


def answering(dataset: Dataset) -> list[Platform]:
    """Return the platforms whose results show what the features do or cost, else the first."""
    platforms = dataset.platforms()
    names = ("populate", "read-fault", "zero-conflict")
    return [platform for platform in platforms if dataset.of(platform, *names)] or platforms[:1]


def answer(
    dataset: Dataset, platform: Platform, figures: Iterable[PublishedFigure]
) -> tuple[str, str, str]:
    """Return three sentences: on write-intent faults, on colour zero pages, and on the costs.

    Commands in them are in backquotes.
    """
    of_platform = [figure for figure in figures if figure.platform in (platform, None)]
    return (
        _faults(dataset, platform),
        _colors(dataset, platform),
        f"{_cost_without_gain(dataset, platform)}; {_verdicts(of_platform)}.",
    )


def mean_words(spread: Spread) -> str:
    """Return the mean over hot colours, with a ≈ if some colours were not measured."""
    return ("" if spread.whole else "≈ ") + format_ratio(spread.mean)


def _change(case: Case, metric: str) -> float | None:
    return change_percent(case.value(BASE, metric), case.value(case.experiment.compare, metric))


def _faults(dataset: Dataset, platform: Platform) -> str:
    case = dataset.find(platform, "populate", "page_faults", {"by": "ldadd", "page": "4k"})
    both = _per_page(case) if case else None
    if case is None or both is None:
        return (
            "What write-intent faults do was not measured: "
            "`firsttouch lab --experiment populate --set by=ldadd` measures it."
        )
    arms = (BASE, case.experiment.compare)
    faults = [format_count(case.value(arm, "page_faults") or 0) for arm in arms]
    word = "1 fault" if both[0] == "1" else f"{both[0]} faults"
    sentence = (
        f"The first touch of a 4 KiB page by an atomic add takes {word} on the stock kernel and "
        f"{both[1]} with both features on ({faults[0]} against {faults[1]} for "
        f"{format_size(case.number('size'))}, {format_change(_change(case, 'page_faults'))})"
    )
    with_it = []
    before, after = (case.value(arm, "tlbi") for arm in arms)
    if before is not None and after is not None:
        with_it.append(f"{format_count(before)} against {format_count(after)} TLB invalidations")
    instructions = _change(case, "instructions_kernel")
    if instructions is not None:
        with_it.append(f"{format_change(instructions)} of kernel instructions")
    if with_it:
        sentence += f", with {' and '.join(with_it)}"
    huge = dataset.find(platform, "populate", "page_faults", {"by": "ldadd", "page": "2m"})
    of_huge = _per_page(huge) if huge else None
    if of_huge:
        sentence += f"; that of a 2 MiB page takes {of_huge[0]} and {of_huge[1]}"
    return f"{sentence}."


def _per_page(case: Case) -> tuple[str, str] | None:
    """Return the faults per page on stock and on the arm that the experiment compares."""
    both = [case.per_page(arm, "page_faults") for arm in (BASE, case.experiment.compare)]
    if both[0] is None or both[1] is None:
        return None
    return format_ratio(both[0]), format_ratio(both[1])


def _colors(dataset: Dataset, platform: Platform) -> str:
    for sweep in sweeps(running(dataset, platform, "zero-conflict")):
        spreads = sweep.spreads(sweep.metric)
        others = [arm for arm in spreads if arm != BASE]
        if BASE in spreads and others:
            before = spreads[BASE]
            # The arm with the best worst case: the most that the feature can do.
            arm = min(others, key=lambda name: spreads[name].worst)
            after = spreads[arm]
            return (
                f"Colour zero pages (arm {arm}) take the worst case of a full "
                f"{sweep.level.upper()} set from {format_ratio(before.worst)} to "
                f"{format_ratio(after.worst)} misses per round and the mean over hot colours "
                f"from {mean_words(before)} to {mean_words(after)}."
            )
    return (
        "What colour zero pages do was not measured: "
        "`firsttouch lab --experiment zero-conflict` measures it."
    )


def _cost_without_gain(dataset: Dataset, platform: Platform) -> str:
    """Return what the features cost accesses that gain nothing: a plain store, a plain read."""
    changes = []
    for words, name, params in _WITHOUT_GAIN:
        case = dataset.find(platform, name, "instructions_kernel", params)
        change = _change(case, "instructions_kernel") if case else None
        if change is not None:
            changes.append(f"{words} by {format_change(change)} of kernel instructions")
    if not changes:
        return "What the features cost accesses that gain nothing was not measured"
    return f"Accesses that gain nothing change too: {', '.join(changes)}"


def _verdicts(figures: Iterable[PublishedFigure]) -> str:
    words = ", ".join(f"{count} {verdict}" for verdict, count in count_verdicts(figures).items())
    if not words:
        return "there is no published figure to compare with"
    return f"of the comparisons with published figures, {words}"
