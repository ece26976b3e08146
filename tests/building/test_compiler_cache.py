# SPDX-License-Identifier: GPL-2.0
"""ccache gives the bytes that the compiler gives, whatever an object includes."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from firsttouch.building import host_tools
from firsttouch.building.host_tools import ccache, cross_compile
from firsttouch.building.store import items, prune

_SOURCE = "mm/x.c"
# A source by the kind of its include, and the file that it includes.
_KINDS = {
    "beside the source": ('#include "internal.h"', "mm/internal.h"),
    "below include/": ("#include <linux/mm.h>", "include/linux/mm.h"),
    "of the architecture": ("#include <asm/page.h>", "arch/arm64/include/asm/page.h"),
    "made by the build": ("#include <generated/a.h>", "objects/include/generated/a.h"),
    "as bytes": ('asm(".incbin \\"../include/data\\"");', "include/data"),
}  # fmt: skip
_TREE = {
    "mm/internal.h": "int a = 1;\n",
    "include/linux/mm.h": "int b = 1;\n",
    "arch/arm64/include/asm/page.h": "int c = 1;\n",
    "objects/include/generated/a.h": "int e = 1;\n",
    "include/linux/kconfig.h": "int f = 1;\n",
    "include/data": "12345678",
}


def _make(tree: Path, include: str) -> Path:
    for name, text in {**_TREE, _SOURCE: f"{include}\nint x;\n"}.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
        # ccache trusts no file that is as new as the compilation.
        os.utime(tree / name, (1, 1))
    return tree


def _compile(tree: Path, *, cached: bool = True) -> tuple[bytes, list[str]]:
    """Compile the source as a kernel's makefile does; return the object, and what ccache logs."""
    objects = tree / "objects"
    log = objects / "ccache.log"
    command = ccache(tree, objects, cross_compile())[0].removeprefix("CC=").split()
    subprocess.run(
        [*command[0 if cached else 2:], "-Wp,-MMD,x.d", "-nostdinc", "-I../arch/arm64/include",
         "-I../include", "-I./include", "-include", "../include/linux/kconfig.h", "-O2", "-c",
         "-o", "x.o", f"../{_SOURCE}"],
        cwd=objects, check=True, env={**os.environ, "CCACHE_STATSLOG": str(log)},
    )  # fmt: skip
    said = log.read_text().splitlines() if log.exists() else []
    log.unlink(missing_ok=True)
    return (objects / "x.o").read_bytes(), said


@pytest.mark.parametrize("kind", _KINDS)
def test_a_cached_object_has_the_bytes_of_the_compiler(
    own_cache: Path, tmp_path: Path, kind: str
) -> None:
    include, name = _KINDS[kind]
    tree = _make(tmp_path / "tree", include)
    plain, _ = _compile(tree, cached=False)
    assert [_compile(tree)[0] for _ in range(2)] == [plain, plain]
    # A tree at another path shares what does not depend on what ccache cannot see.
    other = _make(tmp_path / "a/b/tree", include)
    shared, said = _compile(other)
    assert shared == plain
    assert "direct_cache_hit" in said or (kind == "as bytes" and not said)
    # The included file changes, and nothing else, not even its size and its time.
    (other / name).write_text(_TREE[name].replace("1", "2"))
    os.utime(other / name, (1, 1))
    assert _compile(other)[0] == _compile(other, cached=False)[0] != plain


def test_a_new_header_that_is_found_earlier_is_seen(own_cache: Path, tmp_path: Path) -> None:
    include = "#include <linux/mm.h>"
    first, _ = _compile(_make(tmp_path / "tree", include))
    other = _make(tmp_path / "other", include)
    # One that can hide no other costs nothing.
    (other / "include/linux/write_intent.h").touch()
    same, said = _compile(other)
    assert same == first and "direct_cache_hit" in said
    host_tools._header_names.cache_clear()
    shadow = other / "arch/arm64/include/linux/mm.h"
    shadow.parent.mkdir()
    shadow.write_text("int shadow = 3;\n")
    assert _compile(other)[0] == _compile(other, cached=False)[0] != first


def test_settings_of_the_users_do_not_count(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CCACHE_SLOPPINESS", "include_file_mtime,time_macros")
    monkeypatch.setenv("CCACHE_DIR", str(tmp_path / "theirs"))
    monkeypatch.setenv("CCACHE_MAXSIZE", "1G")
    script = ccache(tmp_path, tmp_path, cross_compile())[0].split()[1]
    told = subprocess.run(
        ["sh", script, "--show-config"], check=True, capture_output=True, text=True
    ).stdout
    assert "time_macros" not in told
    assert f"cache_dir = {own_cache}/ccache\n" in told
    # Its size is theirs to decide.
    assert re.search(r"max_size = 1(\.0)? ?G", told)


def test_the_store_counts_and_prunes_it(own_cache: Path, tmp_path: Path) -> None:
    _compile(_make(tmp_path / "tree", ""))
    (item,) = (item for item in items() if item.path == own_cache / "ccache")
    assert item.size > 1000 and item in prune(0)
