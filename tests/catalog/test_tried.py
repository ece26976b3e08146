# SPDX-License-Identifier: GPL-2.0
"""Arms of `firsttouch try`: what a user gives is checked before anything is built."""

from firsttouch.catalog.arms import Wanted, tried_arms
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
