# SPDX-License-Identifier: GPL-2.0
"""A survey on the terminal: at most 100 columns, plain text if it is not a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console
from rich.table import Table

from firsttouch.output.labels import group_by_reason
from firsttouch.output.plain import fits, plain, plain_table, print_table
from firsttouch.quantities import format_size
from firsttouch.survey.advice import Sentence
from firsttouch.survey.counters import COUNTED, CounterFinding
from firsttouch.survey.findings import Findings
from firsttouch.survey.formats import (
    PLUS_MINUS,
    count_or_dash,
    figure_or_dash,
    median_or_dash,
    size_or_dash,
)
from firsttouch.survey.geometry import CacheFinding
from firsttouch.survey.host import Cache, Host
from firsttouch.survey.samples import Survey
from firsttouch.survey.tasks import kind_name


def print_survey(
    survey: Survey, findings: Findings, sentences: Iterable[Sentence], console: Console
) -> None:
    """Print the verdict, the conclusions, the host and the measurements."""
    verdict, *others = sentences
    console.print(plain(verdict.text, "bold"))
    _print_sentences(others, findings, console)
    _print_host(survey, findings, console)
    _print_caches(findings, console)
    _print_touches(findings, console)
    _print_colors(findings, console)
    _print_counters(findings, console)
    _print_operations(findings, console)


def _print_sentences(sentences: Iterable[Sentence], findings: Findings, console: Console) -> None:
    _heading("What follows", console)
    last = ""
    for sentence in sentences:
        about = "" if sentence.about == last else sentence.about
        grid = _grid()
        grid.add_row(about, plain(sentence.text))
        console.print(grid)
        last = sentence.about
    if not findings.virtual_time:
        console.print(plain(PLUS_MINUS, "dim"))


def _heading(text: str, console: Console) -> None:
    console.print(f"\n[bold]{text}[/bold]")


def _print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], console: Console) -> None:
    """Print a name and figures a row; as lines, which leave out figures that there are not."""
    rows = list(rows)
    table = _figures(columns, rows)
    if not fits(table, console):
        table = _figures(columns, [["" if cell == "-" else cell for cell in row] for row in rows])
    print_table(table, console)


def _figures(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    table = plain_table(columns[:1], columns[1:])
    for row in rows:
        table.add_row(*map(plain, row))
    return table


def _grid() -> Table:
    """Return a table of a word and a text that may take several lines."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(width=13)
    grid.add_column(overflow="fold")
    return grid


def _print_host(survey: Survey, findings: Findings, console: Console) -> None:
    host = survey.host
    _heading("Host", console)
    virtual = ", a virtual machine" if host.virtual else ""
    rows = [
        ("processor", f"{host.processor}, {host.architecture}, {_cpus(host)}{virtual}"),
        ("kernel", f"Linux {host.kernel}, pages of {format_size(host.page_size)}"),
        ("measured on", f"CPU {host.cpu}" + _guest(survey)),
        ("huge pages", _policies(host.thp)),
        ("mTHP", _mthp(host)),
        ("zero pages", str(findings.zero_pages or f"unknown: {findings.no_zero_pages}")),
    ]
    grid = _grid()
    for row in rows:
        grid.add_row(*map(plain, row))
    console.print(grid)


def _cpus(host: Host) -> str:
    return "1 CPU" if host.cpus == 1 else f"{host.cpus} CPUs"


def _guest(survey: Survey) -> str:
    if survey.guest is None:
        return ""
    return f" of a guest: arm {survey.guest.arm}, {survey.guest.boot or 'no boot parameters'}"


def _policies(thp: Mapping[str, str]) -> str:
    names = ("enabled", "defrag", "shmem_enabled", "use_zero_page")
    shown = [f"{name} {thp[name]}" for name in names if name in thp]
    return ", ".join(shown) or "this kernel has none"


def _mthp(host: Host) -> str:
    if not host.mthp:
        return "this kernel has none (6.8 or later may)"
    by_policy: dict[str, list[str]] = {}
    for size, policy in host.mthp.items():
        by_policy.setdefault(policy, []).append(format_size(size))
    return "; ".join(f"{policy}: {', '.join(sizes)}" for policy, sizes in by_policy.items())


def _print_caches(findings: Findings, console: Console) -> None:
    _heading("Caches: geometry in sysfs, and the time of a read of lines of one set, ns", console)
    rows = []
    measured = {finding.level: finding for finding in findings.caches}
    for level in sorted({*measured, *(cache.level for cache in findings.host.caches)}):
        cache = findings.host.cache(level) or Cache(level, None, None, None, None)
        colors = cache.geometry.colors(findings.host.page_size) if cache.geometry else None
        rows.append(
            (
                level.upper(),
                size_or_dash(cache.size),
                count_or_dash(cache.ways),
                count_or_dash(cache.line),
                size_or_dash(cache.way_size),
                count_or_dash(colors),
                *_cache_times(measured.get(level)),
            )
        )
    columns = ("", "size", "ways", "line", "way", "colours", "hit", "conflict", "2 x ways")
    _print_table(columns, rows, console)
    for finding in findings.caches:
        unknown = "" if finding.reported else "sysfs does not have its ways; "
        console.print(plain(f"{finding.level.upper()}: {unknown}{finding.agreement}."))


def _cache_times(finding: CacheFinding | None) -> list[str]:
    if finding is None:
        return ["-", "-", "-"]
    return [figure_or_dash(f, 2) for f in (finding.within, finding.beyond, finding.twice)]


def _print_touches(findings: Findings, console: Console) -> None:
    unit = "instructions" if findings.virtual_time else "ns"
    _heading(f"First touch, {unit} a page: medians, and the width of the middle half", console)
    rows = []
    for touch in findings.touches:
        if touch.elapsed is None or touch.busy is None or touch.system is None:
            continue
        rows.append(
            (
                kind_name(touch.kind, findings.host),
                format_size(touch.page_size),
                f"{touch.faults:,.2f}",
                f"{touch.elapsed.median:,.0f}",
                f"{touch.elapsed.relative_spread:.0%}",
                f"{touch.busy.median:,.0f}",
                f"{touch.busy.relative_spread:.0%}",
                f"{touch.system:,.0f}",
                f"{touch.against_floor:.2f} x" if touch.against_floor else "-",
            )
        )
    columns = (
        "by",
        "page",
        "faults",
        "time",
        "spread",
        "processor",
        "spread",
        "system",
        "to floor",
    )
    _print_table(columns, rows, console)
    console.print("The floor is MADV_POPULATE_WRITE, by processor time.", style="dim")
    missing = [
        (f"{kind_name(t.kind, findings.host)} in {format_size(t.page_size)} pages", t.unavailable)
        for t in findings.touches
    ]
    _print_reasons(missing, console)


def _print_colors(findings: Findings, console: Console) -> None:
    colored = [finding for finding in findings.colors if finding.spread]
    if not colored:
        return
    _heading("Hot lines of one set beside zero pages, ns a round", console)
    rows = [
        (
            finding.geometry.level.upper(),
            str(finding.colors),
            figure_or_dash(finding.apart, 1),
            f"{finding.mean:,.1f}" if finding.mean else "-",
            figure_or_dash(finding.meeting, 1),
            figure_or_dash(finding.spread, 1),
        )
        for finding in colored
    ]
    columns = ("", "colours", "one zero page: best", "mean", "worst", "one of each colour")
    _print_table(columns, rows, console)


def _print_counters(findings: Findings, console: Console) -> None:
    _heading("Hardware counters", console)
    counted = [finding for finding in findings.counters if finding.figures]
    if counted:
        columns = ("", "store, a page", "ldadd, a page", "ways, a read", "ways + 1, a read")
        _print_table(columns, [(f.name, *_counts(f)) for f in counted], console)
    _print_reasons(((f.name, f.unavailable) for f in findings.counters), console)


def _print_operations(findings: Findings, console: Console) -> None:
    if not findings.operations:
        return
    unit = "instructions" if findings.virtual_time else "ns"
    _heading(f"Operations of mm, {unit} each: medians, and the width of the middle half", console)
    rows = [
        (
            operation.name,
            f"{operation.faults:,.2f}",
            f"{operation.elapsed.median:,.0f}",
            f"{operation.elapsed.relative_spread:.0%}",
            f"{operation.busy.median:,.0f}",
            f"{operation.busy.relative_spread:.0%}",
        )
        for operation in findings.operations
        if operation.faults is not None and operation.elapsed and operation.busy
    ]
    _print_table(("", "faults", "time", "spread", "processor", "spread"), rows, console)
    _print_reasons(((each.name, each.unavailable) for each in findings.operations), console)


def _counts(finding: CounterFinding) -> list[str]:
    return [median_or_dash(finding.figures.get(work), 2) for work in COUNTED]


def _print_reasons(items: Iterable[tuple[str, str]], console: Console) -> None:
    """Print each reason once, with the names of what is unavailable for that reason."""
    for group in group_by_reason((name, reason, "") for name, reason in items if reason):
        console.print(plain(f"Unavailable: {', '.join(group.names)}: {group.reason}."))
