# SPDX-License-Identifier: GPL-2.0
"""What a survey reads of a host, from sysfs and from lscpu."""

import json
from pathlib import Path

import pytest

from firsttouch.vm.host import HostCache, lscpu, lscpu_fields, processor_name, read_host
from tests.support.surveys import HOST

_CACHE = "sys/devices/system/cpu/cpu3/cache"
_THP = "sys/kernel/mm/transparent_hugepage"


def test_policies_caches_and_features_are_read(tmp_path: Path) -> None:
    files = {
        f"{_CACHE}/index0/level": "1", f"{_CACHE}/index0/type": "Data",
        f"{_CACHE}/index0/size": "64K", f"{_CACHE}/index0/ways_of_associativity": "4",
        f"{_CACHE}/index0/coherency_line_size": "64", f"{_CACHE}/index0/number_of_sets": "256",
        # Apple's device trees give sizes only; the kernel then shows ways of 0.
        f"{_CACHE}/index2/level": "2", f"{_CACHE}/index2/type": "Unified",
        f"{_CACHE}/index2/size": "128K", f"{_CACHE}/index2/ways_of_associativity": "0",
        "sys/devices/system/cpu/cpu3/cpufreq/scaling_governor": "schedutil",
        f"{_THP}/enabled": "always [madvise] never",
        f"{_THP}/hpage_pmd_size": "2097152",
        f"{_THP}/hugepages-2048kB/enabled": "always [inherit] madvise never",
        f"{_THP}/hugepages-64kB/enabled": "always inherit madvise [inorder] never",
        "proc/sys/vm/write_intent": "1",
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    host = read_host([3], tmp_path)
    assert host.caches == (HostCache("l1d", 65536, 4, 64),)
    assert host.caches[0].way_size == 16384
    assert host.thp == {"enabled": "madvise", "hpage_pmd_size": "2097152"}
    assert list(host.mthp.items()) == [("64", "inorder"), ("2048", "inherit")]
    assert (host.before.governor, host.write_intent, host.fault_ahead) == ("schedutil", "1", 65536)
    assert host.maps(2 << 20) and host.maps(65536) and not host.maps(131072)


def test_a_kernel_without_any_of_the_files(tmp_path: Path) -> None:
    host = read_host([0], tmp_path)
    assert (host.caches, host.thp, host.mthp) == ((), {}, {})
    assert (host.before.governor, host.write_intent, host.fault_ahead) == ("", None, 0)
    assert not host.maps(2 << 20)
    assert HOST.maps(2 << 20)


def _field(name: str, data: str | None, *children: object) -> dict[str, object]:
    return {"field": f"{name}:", "data": data} | ({"children": children} if children else {})


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ([_field("Vendor ID", "ARM"), _field("Model name", "Neoverse-N1")], "Neoverse-N1"),
        ([_field("Vendor ID", "ARM", _field("Model name", "Cortex-A55"),
                 _field("Model name", "Cortex-A76"))], "Cortex-A55 + Cortex-A76"),
        ([_field("Off-line CPU(s) list", None)], ""),
    ],
)  # fmt: skip
def test_the_model_of_each_kind_of_cpu_is_named(fields: list[object], name: str) -> None:
    assert lscpu_fields(json.dumps({"lscpu": fields})).get("Model name", "") == name


def test_a_host_without_lscpu_has_an_unknown_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    lscpu.cache_clear()
    assert processor_name() == "unknown CPU"
    lscpu.cache_clear()
    monkeypatch.undo()
    assert processor_name() != "unknown CPU"
