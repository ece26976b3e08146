# SPDX-License-Identifier: GPL-2.0
"""The write-intent decoder against an independent assembler."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from .conftest import Assemble
from .mnemonics import NEGATIVES, Intent, forms, lines, of_kernel


def _kinds(decoder: Path, words: bytes) -> list[Intent]:
    digits = subprocess.run([decoder, "kinds"], input=words, capture_output=True, check=True).stdout
    return [Intent(int(digit)) for digit in digits.decode()]


def test_every_mnemonic_size_ordering_and_alias_has_its_kind(
    decoder: Path, assemble: Assemble
) -> None:
    wanted = [(line, of_kernel(form.intent)) for form in forms() for line in lines(form)]
    kinds = _kinds(decoder, assemble([line for line, _ in wanted]))
    wrong = [
        f"{line}: {kind.name}"
        for (line, intent), kind in zip(wanted, kinds, strict=True)
        if kind is not intent
    ]
    assert not wrong


# (operations x orderings x sizes) of each extension in turn.
COUNTS = {
    "ld": 8 * 4 * 4 + 2 * 4 + 3 * 4 * 2 + 5 * 4 * 4 + 16,  # LSE, LSE128, LSUI, LSFE, exclusives
    "st": 8 * 2 * 4 + 3 * 2 * 2 + 5 * 2 * 4,  # LSE, LSUI, LSFE: no acquire
    "swp": 4 * 4 + 4 + 4 * 2,  # LSE, LSE128, LSUI
    "cas": 4 * 4 + 4 * 2 + 4 + 4,  # CAS, CASP, CAST, CASPT
    "rcw": 2 * 4 * (2 + 3 * 2),  # plain and soft, each CAS, CASP and three operations, P or not
}


@pytest.mark.parametrize("family", COUNTS)
def test_the_list_of_mnemonics_is_as_long_as_the_architecture_says(family: str) -> None:
    of_family = {(f.mnemonic, f.prefix) for f in forms() if f.mnemonic.startswith(family)}
    assert len(of_family) == COUNTS[family]


def test_no_mnemonic_is_left_out_of_the_count() -> None:
    assert len({(f.mnemonic, f.prefix, f.operands) for f in forms()}) == sum(COUNTS.values())


def test_other_loads_stores_and_prefetches_have_no_intent(
    decoder: Path, assemble: Assemble
) -> None:
    wanted = NEGATIVES.strip().splitlines()
    kinds = _kinds(decoder, assemble(wanted))
    wrong = [
        f"{line}: {kind.name}"
        for line, kind in zip(wanted, kinds, strict=True)
        if kind is not Intent.NONE
    ]
    assert not wrong
