# SPDX-License-Identifier: GPL-2.0
"""The answer in three sentences, made from the results; what was not measured is said so."""

from __future__ import annotations

from firsttouch.quantities import format_change, format_count, format_size
from firsttouch.analysis.claims import Claim
from firsttouch.output.html.conflict import mean_label, sweep, sweeps
from firsttouch.analysis.dataset import BASE_ARM, Case, Dataset, Setting
from firsttouch.output.html.faults import faults_per_page
from firsttouch.output.labels import ratio_label
from firsttouch.analysis.summary import change_percent

# The experiments that the sentences are made from.
ANSWERING = ("populate", "read-fault", "zero-conflict")


def answer(dataset: Dataset, setting: Setting, claims: list[Claim]) -> tuple[str, str, str]:
    """Return what write-intent faults do, what colour zero pages do, and what the rest pays.

    Commands stand between backquotes.
    """
    own = [claim for claim in claims if claim.setting in (setting, None)]
    return (
        _faults(dataset, setting),
        _colors(dataset, setting),
        f"{_price(dataset, setting)}; {_verdicts(own)}.",
    )


def _change(case: Case, metric: str) -> float | None:
    return change_percent(case.value(BASE_ARM, metric), case.value(case.experiment.compare, metric))


def _faults(dataset: Dataset, setting: Setting) -> str:
    case = dataset.find(setting, "populate", "page_faults", by="ldadd", page="4k")
    if case is None:
        return (
            "What write-intent faults do was not measured: "
            "`firsttouch lab --experiment populate --set by=ldadd` measures it."
        )
    arm = case.experiment.compare
    per_page = [ratio_label(faults_per_page(case, name) or 0) for name in (BASE_ARM, arm)]
    faults = [format_count(case.value(name, "page_faults") or 0) for name in (BASE_ARM, arm)]
    sentence = (
        f"The first touch of a 4 KiB page by an atomic add takes {_faults_word(per_page[0])} on "
        f"the stock kernel and {per_page[1]} with both features on ({faults[0]} against "
        f"{faults[1]} for {format_size(int(case.params['size']))}, "
        f"{format_change(_change(case, 'page_faults'))})"
    )
    with_it = []
    invalidations = [case.value(name, "tlbi") for name in (BASE_ARM, arm)]
    if None not in invalidations:
        before, after = (format_count(count or 0) for count in invalidations)
        with_it.append(f"{before} against {after} TLB invalidations")
    time = _change(case, "sys_ns")
    if time is not None:
        with_it.append(f"{format_change(time)} of time in the kernel")
    if with_it:
        sentence += f", with {' and '.join(with_it)}"
    huge = dataset.find(setting, "populate", "page_faults", by="ldadd", page="2m")
    if huge is not None:
        both = [ratio_label(faults_per_page(huge, name) or 0) for name in (BASE_ARM, arm)]
        sentence += f"; that of a 2 MiB page takes {both[0]} and {both[1]}"
    return f"{sentence}."


def _faults_word(count: str) -> str:
    return "1 fault" if count == "1" else f"{count} faults"


def _colors(dataset: Dataset, setting: Setting) -> str:
    for one in sweeps(dataset, setting):
        found = sweep(one.cases, one.metric)
        others = [arm for arm in found if arm != BASE_ARM]
        if BASE_ARM in found and others:
            before = [misses for _, misses in found[BASE_ARM]]
            # The arm whose worst case is best: what the feature can do at most.
            arm = min(others, key=lambda name: max(value for _, value in found[name]))
            after = [misses for _, misses in found[arm]]
            worst = [ratio_label(max(values)) for values in (before, after)]
            mean = [mean_label(found[name], len(one.cases)) for name in (BASE_ARM, arm)]
            return (
                f"Colour zero pages (arm {arm}) take the worst case of a full {one.level.upper()} "
                f"set from {worst[0]} to {worst[1]} misses per round and the mean over hot colours "
                f"from {mean[0]} to {mean[1]}."
            )
    return (
        "What colour zero pages do was not measured: "
        "`firsttouch lab --experiment zero-conflict` measures it."
    )


def _price(dataset: Dataset, setting: Setting) -> str:
    """Say what those pay that gain nothing: a plain store and a plain read."""
    found = []
    for words, name, params in (
        ("a plain store", "populate", {"by": "store", "page": "4k"}),
        ("a plain read", "read-fault", {}),
    ):
        for metric in ("instructions_kernel", "sys_ns"):
            case = dataset.find(setting, name, metric, **params)
            change = _change(case, metric) if case else None
            if change is not None:
                what = "kernel instructions" if metric == "instructions_kernel" else "kernel time"
                found.append(f"{words} by {format_change(change)} of {what}")
                break
    if not found:
        return "What the features cost those that gain nothing was not measured"
    return f"What gains nothing changes too: {', '.join(found)}"


def _verdicts(claims: list[Claim]) -> str:
    counts = {
        verdict: sum(claim.verdict == verdict for claim in claims)
        for verdict in ("reproduced", "exceeded", "not reproduced", "not measured")
    }
    words = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    return f"of the comparisons with published figures, {words}" if words else (
        "no published figure is known to compare with"
    )  # fmt: skip
