# SPDX-License-Identifier: GPL-2.0
"""A recording of some blocks of addresses: what it says of these, and of all."""

from __future__ import annotations

import random
import struct
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from firsttouch.finder.document import FILE_NAME, read_trace
from firsttouch.finder.doubles import find
from firsttouch.finder.events import Fault
from firsttouch.finder.kinds import FIRST_WRITE, NAMES
from firsttouch.finder.records import open_recording
from firsttouch.finder.sampling import errors
from firsttouch.finder.totals import Totals
from tests.conftest import Firsttouch

_SAMPLE, _START = 9, 100
_HEADER = struct.Struct("<IHH")
_MAGIC = 8
# Some 40 blocks, faults of most kinds, and short processes.
_COMMAND = ("perl", "-e", '%h=map{$_=>1}1..200000; system("true") for 1..3')


def _group(address: int, groups: int) -> int:
    """Return the group of an address's block; recorder/rings.c keeps those of group 0."""
    return ((address >> 21) * 0x9E3779B97F4A7C15 % 2**64 >> 32) % groups


def _records(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = _MAGIC
    while at < len(data):
        kind, _, size = _HEADER.unpack_from(data, at)
        yield kind, data[at : at + size]
        at += size


def _filtered(whole: Path, group: int, groups: int, sample: int = 1) -> Path:
    """Return a copy of a recording with the faults of a group, which says that it is a sample."""
    data = whole.read_bytes()
    parts = [data[:_MAGIC]]
    for kind, record in _records(data):
        if kind == _START:
            record = record[:-8] + struct.pack("<Q", sample)
        if kind == _SAMPLE:
            # Behind the pc, pid, tid and time.
            (address,) = struct.unpack_from("<Q", record, _HEADER.size + 24)
            if _group(address, groups) != group:
                continue
        parts.append(record)
    copy = whole.with_name("filtered")
    copy.write_bytes(b"".join(parts))
    return copy


@pytest.fixture(scope="module")
def whole(recorder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("whole") / "trace.data"
    subprocess.run([recorder, "-o", file, "--", *_COMMAND], check=True)
    return file


def _kinds(totals: Totals) -> Counter[str]:
    return Counter({name: totals.of_kind(kind) for kind, name in enumerate(NAMES)})


@pytest.mark.long
def test_what_is_said_of_a_block_is_what_the_whole_recording_says(whole: Path) -> None:
    """So the samples that have each block once sum up to the whole."""
    every, groups = find(open_recording(whole)), 4
    samples = [find(open_recording(_filtered(whole, group, groups))) for group in range(groups)]
    parts = sum(map(_kinds, samples), Counter[str]())
    doubles = sum(sample.counts.total() for sample in samples)
    assert parts == +_kinds(every)
    assert doubles == every.counts.total() > 100
    assert len(parts) > 5


@pytest.mark.long
def test_all_counts_of_a_sample_sum_up_to_what_the_kernel_counted(whole: Path) -> None:
    recording = open_recording(_filtered(whole, 0, 3, sample=3))
    totals = find(recording)
    assert recording.ending is not None
    everything = recording.ending.samples
    # A third of 40 blocks, which by chance may have more than half of the faults.
    assert totals.recorded is not None and 0 < totals.recorded < everything
    assert totals.count == everything == sum(_kinds(totals).values())
    for tallies in (totals.programs, totals.threads, totals.processes):
        assert sum(tally.faults for tally in tallies.values()) == everything
    assert sum(map(sum, totals.timeline.kinds)) == everything
    assert totals.counts.total() == pytest.approx(totals.of_kind(2), abs=len(NAMES))


def test_the_recorder_keeps_the_blocks_of_one_group(recorder: Path, tmp_path: Path) -> None:
    file = tmp_path / "trace.data"
    subprocess.run([recorder, "-n", "3", "-o", file, "--", *_COMMAND], check=True)
    recording = open_recording(file)
    addresses = [event.address for event in recording.events() if isinstance(event, Fault)]
    assert addresses and {_group(address, 3) for address in addresses} == {0}
    assert recording.sample == 3
    assert recording.ending is not None
    assert recording.ending.samples == recording.ending.faults > len(addresses)


def test_the_errors_of_estimates_are_as_large_as_they_are_said_to_be() -> None:
    """Two standard errors have the truth in 95 of 100 samples."""
    chance, sample, hits, runs = random.Random(7), 4, 0, 2000
    pages = [chance.choice((1, 8, 100, 512)) for _ in range(600)]
    for _ in range(runs):
        totals = Totals(recorded=0)
        blocks = {block: n for block, n in enumerate(pages) if chance.random() < 1 / sample}
        totals.blocks[FIRST_WRITE].update(blocks)
        estimate = sample * sum(blocks.values())
        error = errors(totals, sample)[NAMES[FIRST_WRITE]]
        hits += abs(estimate - sum(pages)) <= error * estimate
    assert 0.93 < hits / runs < 0.97


@pytest.mark.long
def test_the_answer_says_that_it_is_an_estimate(firsttouch: Firsttouch) -> None:
    done = firsttouch("trace", "--no-survey", "--sample", "1/2", "--", *_COMMAND)
    assert done.returncode == 0, done.stderr
    trace = read_trace(firsttouch.directory / "out" / FILE_NAME)
    assert trace.sample == 2 and trace.recorded is not None and trace.recorded < trace.faults
    assert trace.lost == 0 and sum(trace.fault_kinds.values()) == trace.faults
    assert 0 < trace.errors["first write"] < 2
    said = " ".join(done.stderr.split())
    recorded = f"in one of 2 blocks of 2 MiB were recorded, {trace.recorded:,} faults."
    assert f"Only the faults {recorded} The number of all faults is exact" in said
    firsttouch("trace", "--no-survey", "--out", "whole", "--", *_COMMAND)
    compared = firsttouch("compare", "whole", "out")
    assert "B has estimates from one of 2 blocks of 2 MiB" in " ".join(compared.stdout.split())


@pytest.mark.long
def test_a_sample_without_faults_says_how_many_there_were(firsttouch: Firsttouch) -> None:
    done = firsttouch("trace", "--no-survey", "--sample", "1/65536", "--", "true")
    said = " ".join(done.stderr.split())
    trace = read_trace(firsttouch.directory / "out" / FILE_NAME)
    assert trace.fault_kinds == {"unknown": trace.faults} and trace.faults > 20
    assert f"true: {trace.faults} page faults: 100.0 % that cannot be told" in said
    assert "No fault is in the one of 65,536 blocks of 2 MiB that was recorded" in said


@pytest.mark.parametrize(
    "sample", ["2", "1/0", "1/-4", "1/x", "2/3", "1/65537", "1/", "", f"1/{'9' * 5000}"]
)
def test_a_sample_is_one_of_n(firsttouch: Firsttouch, sample: str) -> None:
    done = firsttouch("trace", "--sample", sample, "--", "true")
    assert done.returncode == 2
    assert f"--sample {sample}: write 1/N with a whole number" in " ".join(done.stderr.split())
