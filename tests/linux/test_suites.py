# SPDX-License-Identifier: GPL-2.0
"""The kernel code's own tests, KUnit and kselftests, in guests of both releases."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from firsttouch.building.programs import FileDisk
from firsttouch.building.source import KernelSource
from firsttouch.catalog.kernels import release_names
from firsttouch.errors import GuestError
from firsttouch.progress import Reporter
from firsttouch.vm.guest import Clock, Guest
from firsttouch.vm.supervision import Done, run_guest
from tests.linux.conftest import AddScript, MakeGuest
from tests.linux.outcomes import Outcomes
from tests.support.kernels import variant_names
from tests.support.ktap import Case, parse, show
from tests.support.objections import names, reported_by
from tests.support.selftests import build_selftests, suite_names

pytestmark = pytest.mark.kernel

Sources = Callable[[str], KernelSource]


@dataclass(frozen=True)
class Setup:
    """A kind of guest, and the suites that run in it one after the other.

    `script` runs before a suite and makes what it needs; `arguments` are the suite's. `cpu` is
    there in place of the lab's. `disk` is persistent memory with an ext4 on it, which the script
    mounts in its own way.
    """

    name: str
    suites: tuple[str, ...]
    script: str = ""
    arguments: str = ""
    cpu: str = ""
    board: tuple[str, ...] = ()
    disk: bool = False
    cpus: int = 1
    timing: Clock = "identical"

    def of(self, guest: Guest, reporter: Reporter) -> Guest:
        """Return this kind of a guest of the lab."""
        return replace(
            guest,
            machine=replace(guest.machine, cpu=self.cpu, midr=None) if self.cpu else guest.machine,
            board=self.board,
            disk=FileDisk(1 << 20).obtain(reporter) if self.disk else None,
            cpus=self.cpus,
            timing=self.timing,
        )


_SWAP = "mkswap /dev/ram0 >/dev/null && swapon /dev/ram0"
# It faults on a page that is old. Of QEMU's CPUs before Armv8.1 only it has pages of 16 KiB, too.
_NO_FLAGS = "cortex-a35"
# What suites need of their guests beyond the lab's, which have the lab's CPU.
# What one guest lacks, a suite skips.
_SPECIAL = (
    Setup(
        "tags",
        ("arm64/write_intent/matrix", "arm64/write_intent/tags", "arm64/mte/check_zero_page"),
        cpu="max", board=("mte=on",),
    ),
    Setup(
        "virtual machines", ("arm64/mte/check_kvm_zero_page",),
        cpu="max", board=("mte=on", "virtualization=on"),
    ),
    Setup(
        "disk",
        ("mm/zero_page_io",),
        "umount /data && mkdir /mnt && mount -t ext4 -o dax=never /dev/pmem0 /mnt",
        "/mnt", disk=True,
    ),
    Setup(
        "DAX",
        ("mm/zero_page_io",),
        # With DAX a file system has the kernel's page for a block.
        "page=$(($(sed -n '/^KernelPageSize/{s/[^0-9]//g;p;q}' /proc/self/smaps) * 1024))\n"
        "umount /data && mke2fs -b $page -i $page /dev/pmem0 >/dev/null\n"
        "mkdir /mnt && mount -t ext4 -o dax=always /dev/pmem0 /mnt",
        "/mnt", disk=True,
    ),
    Setup("no access flag", ("arm64/write_intent/present",), _SWAP, cpu=_NO_FLAGS),
    Setup("no dirty flag", ("mm/shared_around",), _SWAP, cpu=_NO_FLAGS),
    Setup("swap", ("mm/shared_around",), _SWAP),
    # Round-robin TCG: the first touch of an atomic is a read, as on hardware.
    Setup("interleaved", ("arm64/write_intent/race",), cpus=2, timing="interleaved"),
    # MTTCG: real concurrency, and threads that work against the kernel.
    Setup("parallel", ("arm64/write_intent/race",), cpus=2, timing="parallel"),
    Setup("four processors", ("mm/fault_ahead", "mm/page_counters"), cpus=4, timing="parallel"),
)  # fmt: skip
_ELSEWHERE = {suite for special in _SPECIAL for suite in special.suites}
_SETUPS = (
    Setup("plain", tuple(suite for suite in suite_names() if suite not in _ELSEWHERE)),
    *_SPECIAL,
)
# Prints all settings that suites may change; the first two only act when they are written, and
# khugepaged computes the third anew whenever a policy of huge pages is written.
_SETTINGS = """\
find /proc/sys/vm /proc/sys/kernel/core_pattern /sys/kernel/mm -type f -perm -200 |
grep -v -e /drop_caches -e /compact_memory -e /min_free_kbytes | sort | while read -r file; do
	echo "$file: $(cat $file 2>/dev/null)"
done
cat /proc/mounts /proc/swaps /sys/fs/cgroup/cgroup.subtree_control
ls -d /sys/fs/cgroup/*/
"""
# What suites need of their kernel beyond the lab's configuration.
_ONLY_ON = {"arm64/write_intent/injection": "debug"}
# The exit status of a suite that skips itself, by ksft's convention.
_SKIPPED = 4
# Without these a variant would not be what it is called.
_MACHINES: dict[str, Callable[[Guest], Guest]] = {
    "server": lambda guest: replace(guest, nodes=2, board=(*guest.board, "virtualization=on")),
}
_KUNIT = ("write_intent_kunit.c", "fault_ahead_kunit.c")
# A variant that has a test of its own below.
_BIG_ENDIAN = "big-endian"
# What the names of suites have whose feature a variant lacks.
_WITHOUT = {"no-intent": "write_intent", "realtime": "fault_ahead"}
_TRIED = [name for name in variant_names() if name != _BIG_ENDIAN]
# The lab's configuration, and the variants for which `make regress` has time.
_VARIANTS = [
    pytest.param(None, id="lab"),
    *(pytest.param(name, marks=pytest.mark.regress) for name in _TRIED),
]


def complaints(cases: Sequence[Case], wanted: Collection[str] = ()) -> list[str]:
    """Return what is wrong with the outcome of a suite, which must report the `wanted` tests.

    A suite that printed nothing has not passed.
    """
    passed = [case.name for case in cases if case.outcome == "passed"]
    wrong = [f"{case.name}: {case.why}" for case in cases if case.outcome == "failed"]
    if not passed:
        wrong.append("every test was skipped or failed" if cases else "no test was reported")
    wrong += [
        f"{name!r}, an answer of docs/project/objections.md, was not reported as passed"
        for name in sorted(wanted)
        if not any(names(name, test) for test in passed)
    ]
    return wrong


@pytest.mark.parametrize("variant", _VARIANTS)
@pytest.mark.parametrize("release", release_names())
def test_kunit(
    make_guest: MakeGuest, outcomes: Outcomes, release: str, variant: str | None
) -> None:
    guest = make_guest(release, variant, "kunit.enable=1")
    cases = parse(outcomes.of(guest, f"{release} {variant or 'lab'} kunit").log)
    show(cases)
    # Other configurations may lack a feature, or an extension of the CPU.
    wanted = set[str]() if variant else set.union(*map(reported_by, _KUNIT))
    assert not complaints(cases, wanted)


def _in_guests() -> list[ParameterSet]:
    """Each kind of guest on each release and variant.

    `make test` has those of the lab's configuration. Races last a minute: it has
    them in each timing, but on one release.
    """
    oldest, *_, newest = release_names()
    races = {"interleaved": newest, "parallel": oldest}
    return [
        pytest.param(
            release,
            variant,
            setup,
            id=f"{release}-{variant or 'lab'}-{setup.name}",
            marks=()
            if variant is None and races.get(setup.name, release) == release
            else pytest.mark.regress,
        )
        for release in release_names()
        for variant in (None, *_TRIED)
        for setup in _SETUPS
    ]


@pytest.mark.parametrize("release", release_names())
def test_color_zero_pages_of_a_misaligned_image(
    make_guest: MakeGuest, outcomes: Outcomes, tmp_path: Path, release: str
) -> None:
    """Linux warns about an image that is aligned to less than 2 MiB, and runs."""
    guest = make_guest(release, None, "kunit.enable=1", "kunit.filter_glob=color_zero_page*")
    image = bytearray(guest.image.read_bytes())
    # text_offset (Documentation/arch/arm64/booting.rst): half of what the zero pages take
    image[8:16] = (32 << 10).to_bytes(8, "little")
    (tmp_path / "Image").write_bytes(image)
    guest = replace(guest, image=tmp_path / "Image")
    outcome = outcomes.of(guest, f"{release} misaligned", splats=True)
    assert any("Kernel image misaligned at boot" in line for line in outcome.log)
    cases = parse(outcome.log)
    assert len(cases) >= 10
    assert not complaints(cases)


@pytest.mark.parametrize(("release", "variant", "setup"), _in_guests())
def test_kselftests(
    make_guest: MakeGuest,
    outcomes: Outcomes,
    sources: Sources,
    reporter: Reporter,
    add_script: AddScript,
    release: str,
    variant: str | None,
    setup: Setup,
) -> None:
    """All suites of a kind of guest, as the kernel's own runner runs them: in one boot."""
    suites = [suite for suite in setup.suites if _ONLY_ON.get(suite, variant) == variant]
    binaries = build_selftests(sources(release), reporter)
    guest = replace(
        make_guest(release, variant),
        commands=() if setup.script else tuple(f"/{suite}" for suite in suites),
        files={f"/{suite}": binaries[suite] for suite in suites},
    )
    guest = setup.of(guest, reporter)
    if setup.script:
        (suite,) = suites
        guest = add_script(guest, f"{setup.script} || exit 1\nexec /{suite} {setup.arguments}\n")
    else:
        guest = add_script(guest, _SETTINGS)
        *run, settings = guest.commands
        guest = replace(guest, commands=(settings, *run, settings))
    if machine := _MACHINES.get(variant or ""):
        guest = machine(guest)
    ended = outcomes.of(guest, f"{release} {variant or 'lab'} {setup.name}").commands
    if not setup.script:
        before, after = ended[0].lines, ended[-1].lines
        assert "/proc/sys/vm/nr_hugepages: 0" in before
        assert before == after, "the suites did not restore what they changed"
        ended = ended[1:-1]
    parsed = {suite: parse(done.lines) for suite, done in zip(suites, ended, strict=True)}
    show([case for cases in parsed.values() for case in cases])
    wrong = {
        suite: said
        for (suite, cases), done in zip(parsed.items(), ended, strict=True)
        if (said := _suite_complaints(suite, variant, cases, done))
    }
    assert not wrong


def _suite_complaints(suite: str, variant: str | None, cases: list[Case], done: Done) -> list[str]:
    """Return what is wrong with how a suite ended on the lab's kernel or a variant of it."""
    if variant in _WITHOUT and _WITHOUT[variant] in suite:
        # The feature is absent: the suite must say so, and report nothing else.
        said = [case.name for case in cases if case.outcome != "skipped"]
        return said if done.status == _SKIPPED else [*said, f"status {done.status}"]
    said = complaints(cases, reported_by(f"{suite.rpartition('/')[2]}.c") if not variant else set())
    if done.status:
        said.append(f"status {done.status}")
    return said


@pytest.mark.regress
@pytest.mark.parametrize("release", release_names())
def test_counters_of_fault_accounting(
    make_guest: MakeGuest,
    outcomes: Outcomes,
    sources: Sources,
    reporter: Reporter,
    release: str,
) -> None:
    """In Debian's configuration, where ticks stop in tasks; variants carry all series."""
    suite = build_selftests(sources(release), reporter)["mm/page_counters"]
    guest = make_guest(release, None, "nohz_full=1-3", arm="accounting")
    guest = replace(
        guest, commands=("/page_counters",), files={"/page_counters": suite},
        cpus=4, timing="parallel",
    )  # fmt: skip
    outcome = outcomes.of(guest, f"{release} accounting")
    cases = parse(outcome.commands[0].lines)
    show(cases)
    assert not complaints(cases)


@pytest.mark.regress
def test_kunit_on_a_big_endian_kernel(make_guest: MakeGuest, tmp_path: Path) -> None:
    """Without programs: there is no compiler for them. 7.3 marks the option as broken."""
    log = tmp_path / "log"
    with pytest.raises(GuestError, match="No working init found"):
        run_guest(make_guest("6.12", _BIG_ENDIAN, "kunit.enable=1"), log)
    cases = parse(log.read_text(errors="replace").splitlines())
    show(cases)
    assert not complaints(cases)
