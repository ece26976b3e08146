# SPDX-License-Identifier: GPL-2.0
"""The results channel: each command's output is its own, however it ends."""

import pytest

from firsttouch.errors import GuestError
from firsttouch.vm.supervision import Done, read_channel


def _ended(number: int, status: int = 0) -> str:
    """What guest/init.c writes after a command."""
    return f'\n{{"command": {number}, "status": {status}}}\n'


def _all(number: int) -> str:
    return f'{{"commands": {number}}}\n'


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        (_all(0), []),
        ('{"a": 1}\n' + _ended(0) + _all(1), [Done(0, ('{"a": 1}',))]),
        # Without a final newline, and with nothing at all.
        ('{"a": 1}' + _ended(0) + _all(1), [Done(0, ('{"a": 1}',))]),
        (_ended(0) + _all(1), [Done(0, ())]),
        (
            "one" + _ended(0) + _ended(1) + "two\nthree\n" + _ended(2) + _all(3),
            [Done(0, ("one",)), Done(0, ()), Done(0, ("two", "three"))],
        ),
        ("half" + _ended(0, 2) + _all(1), [Done(2, ("half",))]),
        (_ended(0, 139) + "after\n" + _ended(1) + _all(2), [Done(139, ()), Done(0, ("after",))]),
        # An empty line is a line. A line break that only Unicode has ends no line.
        ("one\n\ntwo" + _ended(0) + _all(1), [Done(0, ("one", "", "two"))]),
        ("a\u2028b\x0cc\n" + _ended(0) + _all(1), [Done(0, ("a\u2028b\x0cc",))]),
        # Looks like the end of a command, but within a line.
        ('x {"command": 0, "status": 0}' + _ended(0) + _all(1),
         [Done(0, ('x {"command": 0, "status": 0}',))]),
    ],
)  # fmt: skip
def test_each_command_has_its_output_and_its_end(text: str, commands: list[Done]) -> None:
    assert read_channel(text) == commands


@pytest.mark.parametrize(
    "text",
    [
        "", "some output\n", _ended(0), _ended(0) + _all(1)[:-1], _ended(0) + "more" + _all(1),
        _ended(1) + _ended(0) + _all(2), _ended(0) + _ended(0) + _all(2),
        _ended(0) + _ended(2) + _all(2), _ended(0) + _all(2),
    ],
)  # fmt: skip
def test_a_guest_that_ended_before_its_commands_has_no_results(text: str) -> None:
    assert read_channel(text) is None


def test_lines_are_objects_or_named() -> None:
    assert Done(0, ('{"a": [1]}', "{}")).objects() == [{"a": [1]}, {}]
    for line in ("no JSON", "[1]", "", '{"a": '):
        with pytest.raises(GuestError) as error:
            Done(0, ("{}", line)).objects()
        assert str(error.value).endswith(f"not a JSON object: {line!r}")
