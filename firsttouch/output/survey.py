# SPDX-License-Identifier: GPL-2.0
"""A survey on the terminal: at most 100 columns, plain text where there is no terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from firsttouch.quantities import format_size
from firsttouch.survey.host import Cache, Facts
from firsttouch.survey.findings import Findings
from firsttouch.survey.tasks import kind_name
from firsttouch.survey.samples import Figure
from firsttouch.survey.sentences import Sentence
from firsttouch.survey.run import Taken


def print_survey(
    taken: Taken, findings: Findings, sentences: Iterable[Sentence], console: Console
) -> None:
    """Print what the machine is, what was measured, and what follows."""
    _print_facts(taken, findings, console)
    _print_caches(findings, console)
    _print_touches(findings, console)
    _print_colors(findings, console)
    _print_counters(findings, console)
    _heading("What follows", console)
    last = ""
    for sentence in sentences:
        about = "" if sentence.about == last else sentence.about
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(width=13)
        grid.add_column(overflow="fold")
        grid.add_row(about, Text(sentence.text))
        console.print(grid)
        last = sentence.about


def _heading(text: str, console: Console) -> None:
    console.print(f"\n[bold]{text}[/bold]")


def _table(*columns: str) -> Table:
    """Return a table whose first column holds names and whose others hold figures."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", no_wrap=True)
    return table


def _print_facts(taken: Taken, findings: Findings, console: Console) -> None:
    facts = taken.facts
    _heading("Machine", console)
    virtual = {True: ", a virtual machine", False: "", None: ""}[facts.virtual]
    rows = [
        ("processor", f"{facts.processor}, {facts.architecture}, {_cpus(facts)}{virtual}"),
        ("kernel", f"Linux {facts.kernel}, pages of {format_size(facts.page_size)}"),
        ("measured on", f"CPU {facts.cpu}" + _guest(taken)),
        ("huge pages", _policies(facts.thp)),
        ("mTHP", _mthp(facts)),
        ("zero pages", str(findings.zero_pages or f"unknown: {findings.no_zero_pages}")),
    ]
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(width=13)
    grid.add_column(overflow="fold")
    for row in rows:
        grid.add_row(*map(Text, row))
    console.print(grid)


def _cpus(facts: Facts) -> str:
    return "1 CPU" if facts.cpus == 1 else f"{facts.cpus} CPUs"


def _guest(taken: Taken) -> str:
    if taken.where["kind"] != "guest":
        return ""
    return f" of a guest: arm {taken.where['arm']}, {taken.where['boot'] or 'no boot parameters'}"


def _policies(thp: dict[str, str]) -> str:
    names = ("enabled", "defrag", "shmem_enabled", "use_zero_page")
    shown = [f"{name} {thp[name]}" for name in names if name in thp]
    return ", ".join(shown) or "this kernel has none"


def _mthp(facts: Facts) -> str:
    if not facts.mthp:
        return "this kernel has none (6.8 or later may)"
    by_policy: dict[str, list[str]] = {}
    for size, policy in facts.mthp.items():
        by_policy.setdefault(policy, []).append(format_size(size))
    return "; ".join(f"{policy}: {', '.join(sizes)}" for policy, sizes in by_policy.items())


def _print_caches(findings: Findings, console: Console) -> None:
    _heading("Caches, as the kernel tells them and as reads of one set show them", console)
    table = _table("", "size", "ways", "line", "way", "colours", "ns a read: hit", "ways + 1",
                   "2 x ways")  # fmt: skip
    measured = {finding.level: finding for finding in findings.caches}
    page = findings.facts.page_size
    levels = dict.fromkeys([*measured, *(cache.level for cache in findings.facts.caches)])
    for level in sorted(levels):
        cache = findings.facts.cache(level) or Cache(level, None, None, None, None)
        found = measured.get(level)
        way = cache.way_size
        table.add_row(
            level.upper(),
            _size(cache.size),
            _or_dash(cache.ways),
            _or_dash(cache.line),
            _size(way),
            _or_dash(max(way // page, 1) if way else None),
            *(_figure(f, 2) for f in ((found.within, found.beyond, found.twice) if found
                                      else (None, None, None))),
        )  # fmt: skip
    console.print(table)
    for finding in findings.caches:
        told = "" if finding.told else "the kernel does not tell its ways; "
        console.print(f"{finding.level.upper()}: {told}{finding.agreement}.", markup=False)


def _print_touches(findings: Findings, console: Console) -> None:
    unit = "instructions" if findings.virtual_time else "ns"
    _heading(f"First touch, {unit} a page: medians, and how wide their middle half is", console)
    table = _table(
        "by", "page", "faults", "time", "spread", "processor", "spread", "system", "to floor"
    )
    for touch in findings.touches:
        if touch.elapsed is None or touch.busy is None or touch.system is None:
            continue
        table.add_row(
            kind_name(touch.kind, findings.facts),
            format_size(touch.page_size),
            f"{touch.faults:,.2f}",
            f"{touch.elapsed.median:,.0f}",
            f"{touch.elapsed.relative_spread:.0%}",
            f"{touch.busy.median:,.0f}",
            f"{touch.busy.relative_spread:.0%}",
            f"{touch.system:,.0f}",
            f"{touch.against_floor:.2f} x" if touch.against_floor else "-",
        )
    console.print(table)
    console.print("The floor is MADV_POPULATE_WRITE, by processor time.", style="dim")
    missing = [
        (f"{kind_name(t.kind, findings.facts)} in {format_size(t.page_size)} pages", t.unavailable)
        for t in findings.touches
    ]
    _print_reasons(missing, console)


def _print_colors(findings: Findings, console: Console) -> None:
    colored = [finding for finding in findings.colors if finding.spread]
    if not colored:
        return
    _heading("Hot lines of one set beside zero pages, ns a round", console)
    table = _table("", "colours", "one zero page: best", "mean", "worst", "one of each colour")
    for finding in colored:
        table.add_row(
            finding.geometry.level.upper(),
            str(finding.colors),
            _figure(finding.apart, 1),
            f"{finding.mean:,.1f}" if finding.mean else "-",
            _figure(finding.meeting, 1),
            _figure(finding.spread, 1),
        )
    console.print(table)


def _print_counters(findings: Findings, console: Console) -> None:
    _heading("Hardware counters", console)
    counted = [finding for finding in findings.counters if finding.figures]
    if counted:
        table = _table("", "store, a page", "ldadd, a page", "ways, a read", "ways + 1, a read")
        for finding in counted:
            table.add_row(
                finding.name,
                *(_figure(finding.figures.get(what), 2)
                  for what in ("store", "ldadd", "hits", "conflict")),
            )  # fmt: skip
        console.print(table)
    _print_reasons(((f.name, f.unavailable) for f in findings.counters), console)


def _print_reasons(items: Iterable[tuple[str, str]], console: Console) -> None:
    """Print what is unavailable, each reason once."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in items:
        if reason:
            by_reason.setdefault(reason, []).append(name)
    for reason, names in by_reason.items():
        console.print(f"Unavailable: {', '.join(names)}: {reason}.", markup=False)


def _figure(value: Figure | None, decimals: int) -> str:
    return "-" if value is None else f"{value.median:,.{decimals}f}"


def _size(value: int | None) -> str:
    return "-" if value is None else format_size(value)


def _or_dash(value: int | None) -> str:
    return "-" if value is None else str(value)
