# SPDX-License-Identifier: GPL-2.0
"""A survey on the terminal, in at most 100 columns, and the comparison of two."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table as Grid

from firsttouch.analysis.figures import Figure, change_percent
from firsttouch.errors import UserError
from firsttouch.quantities import format_change, format_number_of, format_size
from firsttouch.survey.document import read_survey
from firsttouch.survey.findings import Findings, examine
from firsttouch.survey.sentences import PLUS_MINUS, Sentence
from firsttouch.survey.tasks import FLOOR, kind_name
from firsttouch.tables import Json
from firsttouch.views.comparison import Comparison, Difference, Line
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
        or "none (needs Linux 6.8)",
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
    title = "First touch, ns per page: median and interquartile range"
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
    title = "Caches, and ns per read: hits, and conflicts of one line more than a set has ways"
    if rows:
        print_tables([Table(title, ("", *figures), rows)], console)
    else:
        console.print("sysfs does not describe the caches of this CPU.")


def compared_surveys(a: Path, b: Path) -> Comparison:
    """Return the comparison of two surveys; UserError if one cannot be read."""
    return compare_surveys(*(examine(read_survey(place)) for place in (a, b)))


def compare_surveys(a: Findings, b: Findings) -> Comparison:
    """Return the comparison; UserError if the surveys have no figure in common."""
    ours, theirs = host_facts(a.host), host_facts(b.host)
    differences = tuple(
        Difference(what, ours.get(what, "none"), theirs.get(what, "none"))
        for what in {**ours, **theirs}
        if ours.get(what) != theirs.get(what)
    )
    before, after = dict(_figures(a)), dict(_figures(b))
    lines = tuple(_line(*key, before[key], after[key]) for key in before if key in after)
    if not lines:
        raise UserError("the surveys have no figure in common: survey both again.")
    changed = sum(line.changed for line in lines)
    of = f" They differ in: {', '.join(d.what for d in differences)}." if differences else ""
    sentence = f"{changed:,} of {len(lines):,} figures changed by more than noise.{of}"
    return Comparison((sentence,), differences, ("", "figure"), lines, notes=(PLUS_MINUS,))


def _figures(findings: Findings) -> Iterator[tuple[tuple[str, str], Figure]]:
    for touch in findings.touches:
        what = f"{kind_name(touch.kind, findings.host)}, {format_size(touch.page_size)}"
        if touch.busy:
            yield (what, "faults per page"), Figure("faults", (round(touch.faults, 2),))
            yield (what, "ns per page"), touch.busy
    for found in findings.conflicts:
        for name, time in (("hit", found.hit), ("conflict", found.conflict)):
            if time:
                yield (found.cache.level.upper(), f"{name}, ns per read"), time


def _line(what: str, metric: str, a: Figure, b: Figure) -> Line:
    changed, change = a.differs(b), change_percent(a.median, b.median)
    said = "0 %" if a.median == b.median else format_change(change) if changed else "noise"
    before, after = (f.middle.words() if f.unit == "ns" else f"{f.median:,.2f}" for f in (a, b))
    of: dict[str, Json] = {"what": what, "metric": metric}
    of |= {"a_spread": a.middle.spread, "b_spread": b.middle.spread}
    return Line(of, (what, metric), a.median, b.median, change, (before, after, said), changed)
