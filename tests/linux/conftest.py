# SPDX-License-Identifier: GPL-2.0
"""Fixtures of the kernel code's tests on the build host: the decoder, an assembler."""

from __future__ import annotations

import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

HERE = Path(__file__).parent

Assemble = Callable[[Sequence[str]], bytes]


@pytest.fixture(scope="session")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The decoder, compiled for this host."""
    program = tmp_path_factory.mktemp("decoder") / "decoder"
    subprocess.run(
        ["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", program, HERE / "decoder.c"], check=True
    )
    return program


def _section(elf: bytes, name: bytes) -> bytes:
    """The contents of a section of a 64-bit little-endian ELF file."""
    (table,) = struct.unpack_from("<Q", elf, 0x28)
    size, count, names = struct.unpack_from("<HHH", elf, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", elf, table + size * i) for i in range(count)]
    strings = headers[names][4]
    for offset, _, _, _, begin, length in headers:
        if elf[strings + offset :].startswith(name + b"\0"):
            return elf[begin : begin + length]
    raise AssertionError(f"the assembler wrote no section {name.decode()}")


@pytest.fixture(scope="session")
def assemble(tmp_path_factory: pytest.TempPathFactory) -> Assemble:
    """The words of some instructions, by the clang that ziglang carries."""
    directory = tmp_path_factory.mktemp("assembler")

    def run(lines: Sequence[str]) -> bytes:
        source, objct = (directory / f"text.{end}" for end in ("s", "o"))
        source.write_text("\n".join(lines) + "\n")
        zig = (sys.executable, "-m", "ziglang")
        target = ("-triple", "aarch64-linux-gnu", "-target-feature", "+all")
        clang = [*zig, "clang", "-cc1as", *target, "-filetype", "obj"]
        subprocess.run([*clang, "-o", objct, source], check=True)
        return _section(objct.read_bytes(), b".text")

    return run
