# SPDX-License-Identifier: GPL-2.0
"""A vmlinux with debug information belongs to an image if its code has the same addresses."""

from __future__ import annotations

from pathlib import Path

from firsttouch.building.kernel import addresses

_MAP = """\
ffff800080010000 T _stext
ffff8000805758c0 t e843419@02f6_{number}_f0
ffff800080575900 T vm_normal_page
"""


def _map(tmp_path: Path, text: str) -> list[str]:
    file = tmp_path / "System.map"
    file.write_text(text)
    return addresses(file)


def test_the_number_of_a_veneer_is_no_address(tmp_path: Path) -> None:
    plain = _map(tmp_path, _MAP.format(number="000029af"))
    assert plain == _map(tmp_path, _MAP.format(number="00004362"))
    assert plain != _map(tmp_path, _MAP.format(number="000029af").replace("58c0", "58c8"))
    assert plain != _map(tmp_path, _MAP.format(number="000029af").replace("vm_", "vma_"))
