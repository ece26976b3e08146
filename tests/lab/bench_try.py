#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""How long it takes from an edited line of a kernel to its answer.

python -m tests.lab.bench_try [--runs N] [ROW...]: measures the rows of the table
in docs/try.md, each N times (default 3), and prints the median and all values
in seconds. Each run has an empty store of images and outcomes beside the real
one's sources, programs, ccache and kernel of stock, and edits the line in
another way, so that its object is never in the cache. It needs the kernel of
stock in the store, and takes two builds from nothing for each run of `header`.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from unittest import mock

from firsttouch.building.kernel import KernelImage
from firsttouch.building.source import debian_source
from firsttouch.building.store import store_root
from firsttouch.catalog.releases import load_release
from firsttouch.places import REPOSITORY
from firsttouch.progress import Reporter
from tests.support.checkouts import copy_checkout

_CELL = ("--experiment", "populate", "--set", "by=store", "--set", "page=4k", "--size", "64M")
# The first line of make's output of each part of a build.
_PARTS = {"compile": "  CC ", "link": "  LD      vmlinux.o", "tables of symbols": "  KSYMS "}
_FUNCTION = "static vm_fault_t do_anonymous_page(struct vm_fault *vmf)\n{\n"
_DECLARED = "#ifndef _LINUX_MM_H\n"


def _edit(name: str, after: str, text: str) -> str:
    """Return a patch that adds a line to a file of the kernel, after a text that it has."""
    source = debian_source(load_release("6.12"), Reporter()).tree() / name
    old = source.read_text()
    assert after in old, f"{name} has no {after!r}"
    with tempfile.TemporaryDirectory() as folder:
        for side, contents in (("a", old), ("b", old.replace(after, after + text, 1))):
            (Path(folder, side) / name).parent.mkdir(parents=True)
            (Path(folder, side) / name).write_text(contents)
        done = subprocess.run(
            ["diff", "-u", f"a/{name}", f"b/{name}"], cwd=folder, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
    return done.stdout


def _unique() -> str:
    """Return a statement that no run before had: a constant in a register."""
    return f'\tasm volatile("mov x9, #{time.time_ns() // 1000 % 65536}" ::: "x9");\n'


def _store(folder: Path) -> dict[str, str]:
    """Make a store without outcomes and images but stock's; return the environment."""
    store = folder / "cache/firsttouch"
    (store / "images").mkdir(parents=True)
    for shelf in store_root().iterdir():
        if shelf.name not in ("images", "outcomes"):
            (store / shelf.name).symlink_to(shelf)
    stock = KernelImage(debian_source(load_release("6.12"), Reporter()), changed=False).stored()
    assert stock, "build the kernel of stock first: firsttouch kernel build --stock"
    (store / "images" / stock.name).symlink_to(stock)
    return {**os.environ, "XDG_CACHE_HOME": str(store.parent)}


def _watch(store: Path, seen: dict[str, float], ended: threading.Event) -> None:
    """Note when each part of a build began, by its log."""
    while not ended.wait(0.2):
        for log in store.glob("firsttouch/images/*.making/build.log"):
            text = log.read_text(errors="replace")
            for part, mark in _PARTS.items():
                if mark in text:
                    seen.setdefault(part, time.monotonic())
            if "OBJCOPY arch/arm64/boot/Image" in text:
                seen.setdefault("rest", time.monotonic())


def _run(folder: Path, *words: str | Path, checkout: Path = REPOSITORY) -> float:
    """Run firsttouch; return its seconds, and print where they went."""
    environment = {**_store(folder), "PYTHONPATH": str(checkout)}
    seen: dict[str, float] = {}
    ended = threading.Event()
    watch = threading.Thread(target=_watch, args=(Path(environment["XDG_CACHE_HOME"]), seen, ended))
    watch.start()
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "firsttouch", *words], cwd=folder, env=environment,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    took = time.monotonic() - began
    ended.set()
    watch.join()
    assert not done.returncode, done.stderr
    marks = [("before", began), *seen.items(), ("end", began + took)]
    parts = [f"{name} {after - at:.0f}" for (name, at), (_, after) in itertools.pairwise(marks)]
    built = re.findall(r"Building .*: done, .* in (.*)", done.stderr)
    print(f"    {took:.0f} s: {', '.join(parts)}; builds: {', '.join(built)}", flush=True)
    return took


def _try(folder: Path) -> float:
    patch = folder / "edit.patch"
    patch.write_text(_edit("mm/memory.c", _FUNCTION, _unique()))
    return _run(folder, "try", patch, *_CELL)


def _header(folder: Path) -> float:
    patch = folder / "edit.patch"
    line = f"#define FIRSTTOUCH_EDIT {time.time_ns()}\n"
    patch.write_text(_edit("include/linux/mm.h", _DECLARED, line))
    return _run(folder, "try", patch, *_CELL)


def _header_without_ccache(folder: Path) -> float:
    with mock.patch.dict(os.environ, CCACHE_DISABLE="1"):
        return _header(folder)


def _feature(folder: Path) -> float:
    copy = copy_checkout(folder / "checkout")
    file = copy / "linux/arch/arm64/mm/write_intent.c"
    file.write_text(f"{file.read_text()}\nunsigned long firsttouch_edit = {time.time_ns()};\n")
    return _run(folder, "kernel", "build", checkout=copy)


def _variant(folder: Path) -> float:
    fragment = folder / "variant.config"
    fragment.write_text(f'CONFIG_DEFAULT_HOSTNAME="edit-{time.time_ns()}"\n')
    return _run(folder, "try", "--config", fragment, *_CELL)


_ROWS: Mapping[str, Callable[[Path], float]] = {
    "try": _try,
    "header": _header,
    "header-without-ccache": _header_without_ccache,
    "feature": _feature,
    "variant": _variant,
}


def main() -> int:
    """Run the benchmark and print its figures."""
    parser = argparse.ArgumentParser(description="From an edited line of a kernel to its answer.")
    parser.add_argument("rows", metavar="ROW", nargs="*", help=", ".join(_ROWS))
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    for row in given.rows or _ROWS:
        print(f"{row}:", flush=True)
        took = []
        for _ in range(given.runs):
            with tempfile.TemporaryDirectory(prefix="firsttouch-bench-") as folder:
                took.append(_ROWS[row](Path(folder)))
        values = ", ".join(f"{value:.0f}" for value in took)
        print(f"{row}: median {statistics.median(took):.0f} s of {values}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
