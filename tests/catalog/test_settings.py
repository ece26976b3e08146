# SPDX-License-Identifier: GPL-2.0
"""Settings: each file can be loaded."""

import pytest

from firsttouch.catalog.arms import BARE, load_arm, load_setting, matrix_settings
from firsttouch.catalog.machines import load_machine
from firsttouch.errors import UserError
from firsttouch.files import REPOSITORY, SETTINGS
from firsttouch.tables import names_in


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
