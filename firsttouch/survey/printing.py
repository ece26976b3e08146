# SPDX-License-Identifier: GPL-2.0
"""A survey on the terminal: at most 100 columns, plain text if it is not a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table as Grid

from firsttouch.analysis.figures import Figure
from firsttouch.quantities import format_number_of, format_size
from firsttouch.survey.findings import Findings
from firsttouch.survey.sentences import PLUS_MINUS, Sentence
from firsttouch.survey.tasks import FLOOR, kind_name
from firsttouch.views.tables import Table, print_tables
from firsttouch.views.terminal import plain
from firsttouch.vm.host import Host

_POLICIES = ("enabled", "defrag", "shmem_enabled", "use_zero_page")


def print_survey(findings: Findings, sentences: Iterable[Sentence], console: Console) -> None:
    """Print the verdict, the conclusions, the measurements and the host."""
    verdict, *others = sentences
    console.print(plain(verdict.text, "bold"))
    console.print("\n[bold]What follows[/bold]")
    _print_pairs([(sentence.about, sentence.text) for sentence in others], console)
    console.print(plain(PLUS_MINUS, "dim"))
    _print_touches(findings, console)
    _print_caches(findings, console)
    console.print("\n[bold]Host[/bold]")
    _print_pairs(host_facts(findings.host).items(), console)


def _print_pairs(pairs: Iterable[tuple[str, str]], console: Console) -> None:
    last = ""
    for about, text in pairs:
        grid = Grid.grid(padding=(0, 2, 0, 0))
        grid.add_column(width=13)
        grid.add_column(overflow="fold")
        grid.add_row("" if about == last else about, plain(text))
        console.print(grid)
        last = about


def host_facts(host: Host) -> dict[str, str]:
    """Return the facts that decide the figures of a survey, in words."""
    mthp: dict[str, list[str]] = {}
    for size, policy in host.mthp.items():
        mthp.setdefault(policy, []).append(format_size(int(size) << 10))
    virtual = ", a virtual machine" if host.virtual else ""
    cpus = format_number_of(host.online, "CPUs")
    facts = {
        "processor": f"{host.processor}, {host.architecture}, {cpus}{virtual}",
        "kernel": f"Linux {host.kernel}, pages of {format_size(host.page_size)}",
        "measured on": f"CPU {', '.join(host.cpus)}",
        "huge pages": ", ".join(f"{p} {host.thp[p]}" for p in _POLICIES if p in host.thp) or "none",
        "mTHP": "; ".join(f"{policy}: {', '.join(sizes)}" for policy, sizes in mthp.items())
        or "none (6.8 or later may have it)",
    }
    if host.before.governor:
        facts["governor"] = host.before.governor
    if host.write_intent:
        facts["write intent"] = host.write_intent
    return facts


def _print_touches(findings: Findings, console: Console) -> None:
    rows = [
        (
            kind_name(touch.kind, findings.host),
            format_size(touch.page_size),
            f"{touch.faults:,.2f}",
            *_time(touch.busy),
            *_time(touch.elapsed),
            f"{touch.against_floor:.2f} x" if touch.against_floor else "-",
        )
        for touch in findings.touches
        if touch.busy and touch.elapsed
    ]
    names = ("by", "page")
    figures = ("faults", "processor", "spread", "elapsed", "spread", "to floor")
    title = "First touch, ns a page: medians, and the width of the middle half"
    print_tables([Table(title, (*names, *figures), rows, names=2)], console)
    floor = kind_name(FLOOR, findings.host)
    console.print(f"The floor is {floor}, by processor time.", style="dim")
    missing: dict[str, list[str]] = {}
    for touch in findings.touches:
        if touch.unavailable:
            name = f"{kind_name(touch.kind, findings.host)} in {format_size(touch.page_size)} pages"
            missing.setdefault(touch.unavailable, []).append(name)
    for why, unavailable in missing.items():
        console.print(plain(f"Unavailable: {', '.join(sorted(unavailable))}: {why}."))


def _time(time: Figure) -> tuple[str, str]:
    return f"{time.median:,.0f}", f"{time.relative_spread:.0%}"


def _print_caches(findings: Findings, console: Console) -> None:
    found = {conflict.cache: conflict for conflict in findings.conflicts}
    rows = []
    for cache in findings.host.caches:
        of = found.get(cache)
        times = (of.hit, of.conflict) if of else (None, None)
        sizes = (format_size(cache.size), str(cache.ways), str(cache.line))
        words = (time.middle.words(decimals=2) if time else "-" for time in times)
        rows.append((cache.level.upper(), *sizes, format_size(cache.way_size), *words))
    figures = ("size", "ways", "line", "way", "hit", "conflict")
    title = "Caches, and ns a read: of lines that hit, and of one more than a set has ways"
    if rows:
        print_tables([Table(title, ("", *figures), rows)], console)
    else:
        console.print("sysfs does not describe the caches of this CPU.")
