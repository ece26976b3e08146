# SPDX-License-Identifier: GPL-2.0
"""Releases: a mistake in source.toml is named, and only a version is a release."""

from pathlib import Path

import pytest

from firsttouch.catalog import kernels
from firsttouch.catalog.kernels import load_release, release_names
from firsttouch.errors import UserError

_SOURCE = """
package = "linux-source-6.12"
configuration = "linux-config-6.12"
binary = "linux-image"
suites = ["trixie"]
objects = 1225
"""


@pytest.fixture
def hooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(kernels, "LINUX", tmp_path)
    for name in ("6.12", "6.6", "10.0", "work-in-progress"):
        (tmp_path / "hooks" / name).mkdir(parents=True)
        (tmp_path / "hooks" / name / "source.toml").write_text(_SOURCE)
        (tmp_path / "hooks" / name / "a.patch").touch()
    return tmp_path / "hooks"


def test_releases_are_in_the_order_of_their_versions(hooks: Path) -> None:
    assert release_names() == ["6.6", "6.12", "10.0"]
    (hooks / "6.6/a.patch").unlink()
    assert release_names() == ["6.12", "10.0"]
    assert load_release("6.6").suites == ("trixie",)


def test_an_unknown_release_has_its_nearest_named(hooks: Path) -> None:
    with pytest.raises(UserError, match=r"unknown release '6\.1': use one of 6\.6, 6\.12, "):
        load_release("6.1")


def test_a_mistake_is_named(hooks: Path) -> None:
    (hooks / "6.12/source.toml").write_text(_SOURCE.replace("objects", "object"))
    with pytest.raises(UserError, match=r"6\.12/source\.toml: objects is missing .'object'"):
        load_release("6.12")
