# SPDX-License-Identifier: GPL-2.0
"""Data files: the committed ones are right; a mistake is named by file, key and nearest key."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from firsttouch.catalog.arms import arm_names, load_arm
from firsttouch.catalog.experiment_files import experiment_names, load_experiment
from firsttouch.catalog.machines import load_machine, machine_names
from firsttouch.errors import UserError
from firsttouch.places import ARMS, EXPERIMENTS, MACHINES
from firsttouch.tables import names_in
from tests.support.contrast import contrast

# Of firsttouch/output/html/style.py.
_PAPERS = ("#ffffff", "#14171b")


@pytest.mark.parametrize("name", experiment_names())
def test_each_experiment_loads_and_has_cells(name: str) -> None:
    assert load_experiment(name).combinations()


@pytest.mark.parametrize("name", machine_names())
def test_each_machine_loads(name: str) -> None:
    machine = load_machine(name)
    for kind in machine.cpus:
        assert kind.l1d.sets * kind.l1d.ways * kind.l1d.line == kind.l1d.size
        assert kind.l1d.source


@pytest.fixture
def experiments(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXPERIMENTS, tmp_path / "experiments"))


def _write_changed(source: Path, change: tuple[str, str], file: Path) -> None:
    """Write to `file` what `source` has, with one change that must be possible."""
    text = source.read_text()
    assert change[0] in text
    file.write_text(text.replace(*change, 1))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("question =", "questoin ="), r"populate\.toml: question is missing.*'questoin'"),
        (("default = true", 'default = "yes"'), r"default is 'yes': it must be true or false"),
        (('["stock", "on"]', '["stok", "on"]'), r"arms names 'stok': did you mean 'stock'"),
        (('compare = "on"', 'compare = "onn"'), r"compare is 'onn': did you mean 'on'"),
        (('size = "256M"', 'size = "1Q"'), r"parameters\.size cannot be read: '1Q' is not a size"),
        (("shown = true", "showm = true"), r"metrics\[0\]\.showm is not a key here.*'shown'"),
        (('by = "ldadd"', 'bye = "ldadd"'), r"where\.bye is not a parameter: did you mean 'by'"),
        (("change_percent = -50\n", ""), r"published\[0\].*give one of the two"),
        (
            ('[[published]]\nmetric = "page_faults"', '[[published]]\nmetric = "faults"'),
            r"published\[0\]\.metric is 'faults'",
        ),
        (
            ('[[figure]]\nmetric = "page_faults"', '[[figure]]\nmetric = "faults"'),
            r"figure\[0\]\.metric is 'faults': did you mean 'page_faults'",
        ),
        (
            ('per = "pages"\ngroups', 'per = "pagess"\ngroups'),
            r"figure\[0\]\.per is 'pagess': did you mean",
        ),
        (('per = "pages"\n', 'across = "by"\n'), r"figure\[0\]\.across is 'by', which has no numb"),
        (('per = "pages"\n', 'mark = "@l3.ways"\n'), r"figure\[0\]\.mark is '@l3\.ways': did"),
        (('groups = ["page",', 'groups = ["pages",'), r"figure\[0\]\.groups is 'pages'"),
        (("order = 1\n", 'order = 1\nchart = "lines"\n'), r"chart chooses the figure that \[\[fig"),
        (('per = "page_faults"', 'per = "page_fault"'), r"derived\[3\]\.per is 'page_fault': did"),
        (("above = { by", "above = { bi"), r"derived\[3\]\.above\.bi is not a parameter"),
        (("[parameters]", "[parameters"), r"populate\.toml: not valid TOML"),
        (("question = ", "\x00 = "), r"populate\.toml: not valid TOML"),
    ],
)
def test_a_mistake_in_an_experiment_is_named(
    experiments: Path, change: tuple[str, str], complaint: str
) -> None:
    file = experiments / "populate.toml"
    _write_changed(file, change, file)
    with pytest.raises(UserError, match=complaint):
        load_experiment("populate", experiments)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("suite =", "suit ="), r"programs\.toml: root\.suite is missing.*'suit'"),
        (('"dash"]', "3]"), r"root\.packages"),
    ],
)
def test_a_mistake_in_a_root_is_named(
    experiments: Path, change: tuple[str, str], complaint: str
) -> None:
    file = experiments / "programs.toml"
    _write_changed(file, change, file)
    with pytest.raises(UserError, match=complaint):
        load_experiment("programs", experiments)


def test_scripts_are_the_programs_of_an_experiment(experiments: Path) -> None:
    loaded = load_experiment("doubles", experiments)
    assert loaded.parameters["program"] == tuple(loaded.scripts)
    file = experiments / "doubles.toml"
    begin, _, rest = file.read_text().partition("[root]")
    file.write_text(begin + "[scripts]" + rest.partition("[scripts]")[2])
    with pytest.raises(UserError, match=r"doubles\.toml: scripts has no packages.*\[root\]"):
        load_experiment("doubles", experiments)


def test_scripts_of_another_experiment(experiments: Path) -> None:
    waste, doubles = (load_experiment(name, experiments) for name in ("waste", "doubles"))
    assert (waste.scripts, waste.root) == (doubles.scripts, doubles.root)
    assert waste.parameters == {"program": tuple(doubles.scripts)}
    file = experiments / "waste.toml"
    _write_changed(file, ('"doubles"', '"double"'), file)
    with pytest.raises(UserError, match=r"waste\.toml: scripts_of is 'double': did you mean"):
        load_experiment("waste", experiments)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("ways = 4", "weighs = 4"), r"mine\.toml: cpus\[0\]\.l1d\.ways is missing"),
        (("ways = 4", "ways = 3"), r"l1d\.size is impossible: 65536 bytes in 3 ways"),
        (("ways = 4", "ways = 0"), r"l1d\.ways is 0: it must be more than 0"),
        (("line = 64", "line = 48"), r"l1d\.line is 48: it must be a power of two"),
        (('"64K"', '"-64K"'), r"l1d\.size cannot be read: '-64K' is not a size"),
        (("count = 1", "count = 0"), r"cpus\[0\]\.count is 0: it must be between 1 and 8"),
        (("count = 1", "cuont = 1"), r"cuont is not a key here: did you mean 'count'"),
        (("[[cpus]]", "[[cups]]"), r"cpus is missing"),
        (('"0x413fd0c1"', '"r3p1"'), r"midr\.value is 'r3p1': write MIDR_EL1 as 0x and 8 digits"),
        (("midr = { value", "midr = { valeu"), r"midr\.value is missing.*'valeu'"),
    ],
)
def test_a_mistake_in_a_machine_is_named(
    own_entries: Path, change: tuple[str, str], complaint: str
) -> None:
    _write_changed(MACHINES / "neoverse-n1.toml", change, own_entries / "machines/mine.toml")
    with pytest.raises(UserError, match=complaint):
        load_machine("mine")


def test_arms_differ_in_how_they_are_drawn() -> None:
    marks = [(load_arm(name).mark.shape, load_arm(name).mark.filled) for name in arm_names()]
    assert len(set(marks)) == len(marks) >= 7
    orders = [load_arm(name).order for name in arm_names()]
    assert len(set(orders)) == len(orders)


@pytest.mark.parametrize("name", arm_names())
def test_an_arm_stands_out_from_both_papers(name: str) -> None:
    """By the contrast that WCAG 2 asks of pictures, 3 to 1."""
    mark = load_arm(name).mark
    assert contrast(mark.light, _PAPERS[0]) >= 3
    assert contrast(mark.dark, _PAPERS[1]) >= 3


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (('kernel = "changed"', 'kernel = "chagned"'), r"mine\.toml: kernel is .*mean 'changed'"),
        (("boot =", "boots ="), r"mine\.toml: boot is missing.*'boots'"),
        (('shape = "down"', 'shape = "dwon"'), r"mark\.shape is 'dwon': did you mean 'down'"),
        (('"changed"', '"stock"\nseries = "x"'), r"mine\.toml: series is for a changed kernel"),
        (('"#7a2d2d"', '"red"'), r"mark\.light is 'red': write a colour as #rrggbb"),
    ],
)
def test_a_mistake_in_an_arm_is_named(
    own_entries: Path, change: tuple[str, str], complaint: str
) -> None:
    _write_changed(ARMS / "rmw.toml", change, own_entries / "arms/mine.toml")
    with pytest.raises(UserError, match=complaint):
        load_arm("mine")


def test_a_folder_is_no_entry_whatever_its_name(tmp_path: Path) -> None:
    (tmp_path / "one.toml").touch()
    (tmp_path / "two.toml").mkdir()
    assert names_in(tmp_path) == ["one"]


def test_an_architecture_without_a_feature_gets_none_of_its_boot_words() -> None:
    """Its kernels do not know them, and a guest with such a word is an error."""
    arm64 = load_machine("neoverse-n1")
    x86 = replace(arm64, architecture="x86-64")
    boot = load_arm("all-on").boot
    assert arm64.boot_words(boot) == boot
    assert x86.boot_words(boot) == ("thp_anon=16K-64K:inorder;2M:inherit",)
    assert x86.boot_words(load_arm("color-l2").boot) == ()
