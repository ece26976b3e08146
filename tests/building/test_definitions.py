# SPDX-License-Identifier: GPL-2.0
"""Where the functions of a kernel are defined."""

from __future__ import annotations

from pathlib import Path

import pytest

from firsttouch.building.definitions import find_definitions
from firsttouch.building.sources import KernelSource
from firsttouch.catalog.arms import Kernel
from firsttouch.catalog.releases import load_release

_FILES = {
    "mm/memory.c": """\
static vm_fault_t do_anonymous_page(struct vm_fault *vmf);

static vm_fault_t
do_anonymous_page(struct vm_fault *vmf)
{
\treturn helper(vmf);
}
SYSCALL_DEFINE3(madvise, unsigned long, start, size_t, len, int, behavior)
{
}
vm_fault_t handle_mm_fault(struct vm_area_struct *vma,
\t\t\t   unsigned long address)
{
}
""",
    "include/linux/mm.h": """\
static inline vm_fault_t handle_mm_fault(struct vm_area_struct *vma)
{
}
extern void twice(int a,
\t\t  int b);
""",
    "kernel/a.c": "int twice(void)\n{\n}\n",
    "kernel/b.c": "int twice(void)\n{\n}\nint once(void)\n{\n}\n",
    "drivers/far.c": "int far_away(void)\n{\n}\n",
}


@pytest.fixture
def source(tmp_path: Path) -> KernelSource:
    tree = tmp_path / "tree"
    for name, text in _FILES.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    return KernelSource(
        load_release("6.12"), "6.12.7", "tree", "0" * 64, lambda: tree, lambda *_: tree, tree
    )


def test_a_definition_is_told_from_a_declaration_and_a_call(source: KernelSource) -> None:
    names = ["do_anonymous_page", "__arm64_sys_madvise", "handle_mm_fault", "helper",
             "once.constprop.0", "far_away", "twice"]  # fmt: skip
    assert find_definitions(names, Kernel("stock"), source) == {
        "do_anonymous_page": "mm/memory.c:4",
        "__arm64_sys_madvise": "mm/memory.c:8",
        "handle_mm_fault": "mm/memory.c:11",
        "once.constprop.0": "kernel/b.c:4",
        "far_away": "drivers/far.c:1",
    }


def test_the_line_is_that_of_the_patched_source(source: KernelSource, tmp_path: Path) -> None:
    patch = tmp_path / "x.patch"
    patch.write_text("--- a/kernel/b.c\n+++ b/kernel/b.c\n@@ -1,3 +1,5 @@\n+\n+\n int twice(void)\n"
                     " {\n }\n")  # fmt: skip
    assert find_definitions(["once"], Kernel("stock", (patch,)), source) == {"once": "kernel/b.c:6"}
