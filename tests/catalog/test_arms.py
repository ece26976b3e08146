# SPDX-License-Identifier: GPL-2.0
"""Arms that a user tries, and the settings around them."""

import pytest

from firsttouch.catalog.arms import (
    BARE,
    Wanted,
    load_arm,
    load_setting,
    matrix_settings,
    tried_arms,
)
from firsttouch.catalog.machines import load_machine
from firsttouch.errors import UserError
from firsttouch.files import REPOSITORY, SETTINGS
from firsttouch.tables import names_in
from tests.conftest import TRIED

_PATCH = TRIED / "0001-mm-synchronize-each-first-touch.patch"
_FRAGMENT = TRIED / "memcg-off.config"


def test_an_arm_is_stock_with_all_that_it_is_given() -> None:
    (arm,) = tried_arms([Wanted("mine", [_PATCH], [_FRAGMENT], ["a=1 b", "c"])])
    assert (arm.kernel.kind, arm.kernel.patches, arm.kernel.fragments) == (
        "stock", (_PATCH,), (_FRAGMENT,)
    )  # fmt: skip
    assert arm.boot == ("a=1", "b", "c")
    assert arm.tried and not arm.kernel.unchanged
    assert arm.meaning == f"{_PATCH.name} and {_FRAGMENT.name}, booted with a=1 b c"
    assert arm.options() == [
        "--arm", "mine", str(_PATCH), "--config", str(_FRAGMENT), "--boot", "a=1 b c"
    ]  # fmt: skip


def test_boot_words_alone_leave_the_kernel_as_it_is() -> None:
    (arm,) = tried_arms([Wanted("plain", boot=["init_on_alloc=0"])])
    assert arm.kernel.unchanged
    assert arm.meaning == "booted with init_on_alloc=0"


def test_arms_that_are_tried_together_look_different() -> None:
    names = list("abcdefghijkl")
    arms = tried_arms([Wanted(name, boot=[name]) for name in names])
    assert len({(arm.mark.shape, arm.mark.light) for arm in arms}) == len(names)
    assert [arm.name for arm in sorted(arms, key=lambda arm: arm.order)] == names


@pytest.mark.parametrize("name", names_in(SETTINGS))
def test_each_changes_something_that_there_is(name: str) -> None:
    setting = load_setting(name)
    changed = (setting.boot, setting.board, setting.machine, setting.cpus, setting.fragment)
    assert any(changed)
    assert not setting.fragment or (REPOSITORY / setting.fragment).is_file()
    assert not setting.machine or load_machine(setting.machine)
    # A build takes minutes.
    assert not (setting.quick and setting.fragment)


def test_a_setting_adds_its_words_to_an_arms() -> None:
    arm = load_arm("again")
    assert load_setting("kpti-off").applied(arm).boot == (*arm.boot, "kpti=off")
    with pytest.raises(UserError, match="kpti-off"):
        load_setting("kpti-of")


def test_the_matrix_begins_without_a_setting() -> None:
    quick, whole = matrix_settings("7.3", quick=True), matrix_settings("7.3", quick=False)
    assert quick[0] == whole[0] == BARE
    assert set(quick) < set(whole)


def test_a_release_has_the_preemptions_that_its_kernels_have() -> None:
    """Since 7.0 arm64 has lazy preemption in place of none."""
    preemptions = {
        release: {
            name for s in matrix_settings(release, quick=False) if "preempt" in (name := s.name)
        }
        for release in ("6.12", "7.3")
    }
    assert preemptions == {
        "6.12": {"preempt-none", "preempt-full"},
        "7.3": {"preempt-lazy", "preempt-full"},
    }
