# SPDX-License-Identifier: GPL-2.0
"""ccache gives the bytes that the compiler gives, whatever an object includes."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from firsttouch.building.compiler_cache import (
    build_estimate,
    cache_environment,
    cache_folder,
    compilers,
    count_misses,
    depend_on_lists,
    lacks_most,
    note_build,
)
from firsttouch.building.patching import link_tree
from firsttouch.building.upkeep import items, prune
from firsttouch.catalog.architectures import DEFAULT_ARCHITECTURE

_SOURCE = "mm/x.c"
# A source by the kind of its include, and the file that it includes.
_KINDS = {
    "beside the source": ('#include "internal.h"', "mm/internal.h"),
    "below include/": ("#include <linux/mm.h>", "include/linux/mm.h"),
    "of the architecture": ("#include <asm/page.h>", "arch/arm64/include/asm/page.h"),
    "by a path": ('#include "../kernel/up.h"', "kernel/up.h"),
    "made by the build": ("#include <generated/a.h>", "objects/include/generated/a.h"),
    "before all others": ("", "include/linux/kconfig.h"),
    "of another source": ('#include "part.c"', "mm/part.c"),
    "as bytes": ('asm(".incbin \\"../include/data\\"");', "include/data"),
}  # fmt: skip
_TREE = {
    "mm/internal.h": "int a = 1;\n",
    "include/linux/mm.h": "int b = 1;\n",
    "arch/arm64/include/asm/page.h": "int c = 1;\n",
    "kernel/up.h": "int d = 1;\n",
    "objects/include/generated/a.h": "int e = 1;\n",
    "include/linux/kconfig.h": "int f = 1;\n",
    "mm/part.c": "int g = 1;\n",
    "include/data": "12345678",
}


def _make(tree: Path, include: str) -> Path:
    for name, text in {**_TREE, _SOURCE: f"{include}\nint x;\n"}.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
        # ccache trusts no file that is as new as the compilation.
        os.utime(tree / name, (1, 1))
    return tree


def _compile(tree: Path, *, cached: bool, lists: bool = False) -> bytes:
    """Compile the source as a kernel's makefile does; return the object's bytes."""
    objects = tree / "objects"
    if lists:
        depend_on_lists(tree, objects, DEFAULT_ARCHITECTURE)
    prefix = ["aarch64-linux-gnu-gcc"]
    if cached:
        prefix = compilers(objects=objects)[0].removeprefix("CC=").split()
        assert ("sh" in prefix) == lists
    changes = cache_environment(tree, objects) if cached else {}
    environment = {**os.environ, **changes}
    subprocess.run(
        [*prefix, "-Wp,-MMD,x.d", "-nostdinc", "-I../arch/arm64/include", "-I../include",
         "-I./include", "-include", "../include/linux/kconfig.h", "-O2", "-c", "-o", "x.o",
         f"../{_SOURCE}"],
        cwd=objects, check=True,
        env={name: value for name, value in environment.items() if value is not None},
    )  # fmt: skip
    return (objects / "x.o").read_bytes()


@pytest.mark.parametrize("lists", [False, True])
@pytest.mark.parametrize("kind", _KINDS)
def test_an_object_is_that_of_the_compiler(
    own_cache: Path, tmp_path: Path, kind: str, lists: bool
) -> None:
    include, name = _KINDS[kind]
    tree = _make(tmp_path / "tree", include)
    plain = _compile(tree, cached=False)
    assert [_compile(tree, cached=True, lists=lists) for _ in range(2)] == [plain, plain]
    # A tree at another path shares what does not depend on what ccache cannot see.
    other = _make(tmp_path / "a/b/tree", include)
    assert _compile(other, cached=True, lists=lists) == plain
    assert count_misses(other / "objects") == 0
    # The included file changes, and nothing else, not even its size and its time.
    (other / name).write_text(_TREE[name].replace("1", "2"))
    os.utime(other / name, (1, 1))
    changed = _compile(other, cached=True, lists=lists)
    assert changed == _compile(other, cached=False) != plain
    # What one way has compiled the other has.
    edited = shutil.copytree(other, tmp_path / "edited")
    (edited / "objects/depend.sh").unlink(missing_ok=True)
    (edited / "objects/ccache.log").unlink()
    assert _compile(edited, cached=True) == changed
    assert count_misses(edited / "objects") == 0


def test_a_header_that_includes_bytes_needs_the_preprocessor(tmp_path: Path) -> None:
    tree = _make(tmp_path / "tree", "")
    (tree / "include/linux/mm.h").write_text('asm(".incbin \\"../include/data\\"");\n')
    depend_on_lists(tree, tree / "objects", DEFAULT_ARCHITECTURE)
    assert not (tree / "objects/depend.sh").exists()


def test_a_new_header_that_is_found_earlier_is_seen(own_cache: Path, tmp_path: Path) -> None:
    include = "#include <linux/mm.h>"
    tree = _make(tmp_path / "tree", include)
    first = _compile(tree, cached=True)
    other = _make(tmp_path / "other", include)
    shadow = other / "arch/arm64/include/linux/mm.h"
    shadow.parent.mkdir()
    shadow.write_text("int shadow = 3;\n")
    assert _compile(other, cached=True) == _compile(other, cached=False) != first


def test_a_header_with_a_name_of_its_own_is_shared_by_both_kernels(
    own_cache: Path, tmp_path: Path
) -> None:
    _compile(_make(tmp_path / "tree", ""), cached=True)
    other = _make(tmp_path / "other", "")
    (other / "include/linux/write_intent.h").touch()
    (other / "arch/arm64/include/asm/write_intent.h").touch()
    _compile(other, cached=True)
    assert count_misses(other / "objects") == 0


def test_headers_of_a_linked_folder_count(own_cache: Path, tmp_path: Path) -> None:
    source = _make(tmp_path / "source", "")
    for name in ("drivers/gpu/mm.h", "sound/mm.h"):
        (source / name).parent.mkdir(parents=True)
        (source / name).write_text("int mm = 4;\n")
    # Of these trees, one has links to both folders, one to a single one.
    link_tree(source, tmp_path / "tree", ["mm/x.c"])
    link_tree(source, tmp_path / "other", ["sound/new.c"])
    assert (tmp_path / "tree/sound").is_symlink() and not (tmp_path / "other/sound").is_symlink()
    checks = {
        cache_environment(tmp_path / name, tmp_path / name / "objects")["CCACHE_COMPILERCHECK"]
        for name in ("source", "tree", "other")
    }
    assert len(checks) == 1
    (source / "sound/internal.h").touch()
    changed = cache_environment(source, source / "objects.new")
    assert changed["CCACHE_COMPILERCHECK"] not in checks


def test_settings_of_the_users_do_not_count(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CCACHE_SLOPPINESS", "include_file_mtime,time_macros")
    monkeypatch.setenv("CCACHE_DIR", str(tmp_path / "theirs"))
    monkeypatch.setenv("CCACHE_MAXSIZE", "1G")
    changes = cache_environment(_make(tmp_path / "tree", ""), tmp_path / "tree/objects")
    assert changes["CCACHE_SLOPPINESS"] is None
    assert changes["CCACHE_DIR"] == str(cache_folder())
    # Its size is theirs to decide.
    assert changes["CCACHE_MAXSIZE"] == "1G"


def test_without_ccache_the_compiler_runs(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert compilers() == []
    assert cache_environment(tmp_path, tmp_path / "objects") == {}
    assert count_misses(tmp_path) is None


def test_the_store_counts_and_prunes_it(own_cache: Path, tmp_path: Path) -> None:
    _compile(_make(tmp_path / "tree", ""), cached=True)
    (item,) = (item for item in items() if item.path == cache_folder())
    assert item.size > 1000
    # This run has used it.
    assert item.in_use and prune(0) == []


def _built(objects: Path, compiled: int, preprocessed: int, direct: int) -> Path:
    """Make what a build leaves: the log of ccache, and makefiles' lists of what was read."""
    (objects / "mm").mkdir(parents=True, exist_ok=True)
    words = {
        "cache_miss": compiled,
        "preprocessed_cache_hit": preprocessed,
        "direct_cache_hit": direct,
    }
    log = "".join(f"# ../mm/x.c\n{word}\n" * number for word, number in words.items())
    (objects / "ccache.log").write_text(log)
    for name in ("a", "b", "c"):
        header = "  ../include/linux/mm.h \\\n" + "  ../mm/internal.h \\\n" * (name == "a")
        (objects / f"mm/.{name}.o.cmd").write_text(
            f"source_mm/{name}.o := ../mm/{name}.c\n\ndeps_mm/{name}.o := \\\n{header}"
        )
    return objects


def test_the_time_of_a_build_follows_from_what_is_in_the_cache(
    own_cache: Path, tmp_path: Path
) -> None:
    assert build_estimate("6.12", [], options=False) is None
    cache_folder().mkdir(parents=True)
    note_build("6.12", _built(tmp_path / "objects", 3, 0, 0), 300.0)
    # Until they were measured, a tenth and a third of a build from nothing.
    assert build_estimate("6.12", ["mm/a.c"], options=False) == 30 + 100
    assert build_estimate("6.12", [], options=True) == 100
    note_build("6.12", _built(tmp_path / "objects", 0, 0, 3), 12.0)
    note_build("6.12", _built(tmp_path / "objects", 0, 3, 0), 60.0)
    # What compiled a third of the objects tells neither.
    note_build("6.12", _built(tmp_path / "objects", 1, 0, 2), 200.0)
    note_build("6.12", _built(tmp_path / "objects", 1, 2, 0), 200.0)
    assert build_estimate("6.12", ["mm/internal.h"], options=False) == 12 + 100
    assert build_estimate("6.12", ["include/linux/mm.h", "mm/a.c"], options=False) == 12 + 300
    assert build_estimate("6.12", ["mm/new.c"], options=True) == 60 + 100
    assert build_estimate("7.3", [], options=False) is None
    assert lacks_most("6.12", ["include/linux/mm.h"])
    assert not lacks_most("6.12", ["mm/a.c"])
    assert not lacks_most("7.3", ["include/linux/mm.h"])
