# SPDX-License-Identifier: GPL-2.0
"""linux/ over a tree: shared, not copied; a hook that does not fit is named by file and line."""

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from firsttouch.building import overlay, patches
from firsttouch.building.overlay import Patch
from firsttouch.building.source import KernelSource
from firsttouch.catalog import kernels
from firsttouch.catalog.kernels import Release, load_release, release_names
from firsttouch.errors import UserError
from firsttouch.files import LINUX
from tests.support.sources import fake_source

_FAULT = "arch/arm64/mm/fault.c"
_ORIGINAL = "".join(f"line {number}\n" for number in range(1, 41))
_HOOK = f"""\
--- a/{_FAULT}
+++ b/{_FAULT}
@@ -10,2 +10,3 @@
 line 10
+a new line
 line 11
@@ -30,2 +31,2 @@
-line 30
+another line 30
 line 31
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "tree" / _FAULT).parent.mkdir(parents=True)
    (tmp_path / "tree" / _FAULT).write_text(_ORIGINAL)
    (tmp_path / "tree/mm").mkdir()
    (tmp_path / "tree/mm/memory.c").write_text("memory\n")
    (tmp_path / "tree/scripts").symlink_to("mm")
    (tmp_path / "tree/.git").mkdir()
    return tmp_path / "tree"


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Release:
    monkeypatch.setattr(overlay, "LINUX", tmp_path / "linux")
    monkeypatch.setattr(kernels, "LINUX", tmp_path / "linux")
    hooks = tmp_path / "linux/hooks/6.12"
    hooks.mkdir(parents=True)
    (hooks / "feature.patch").write_text(_HOOK)
    (tmp_path / "linux/mm").mkdir()
    (tmp_path / "linux/mm/feature.c").write_text("feature\n")
    return Release("6.12", "linux-source-6.12", "linux-config-6.12", "linux-image", (), 1)


_FEATURE = Patch("feature", (), "a feature", "Why.\n", ("mm/feature.c",), "")


def _write(tree: Path, name: str) -> None:
    """Add a file to `tree` whose text is its name."""
    (tree / name).parent.mkdir(parents=True, exist_ok=True)
    (tree / name).write_text(name)


def test_the_tree_is_shared_by_links_and_changed_files_are_copies(
    tree: Path, release: Release, tmp_path: Path
) -> None:
    changed = tmp_path / "changed"
    overlay.link_tree(tree, changed)
    overlay.apply(_FEATURE, release, changed)
    assert (changed / "mm/memory.c").is_symlink()
    assert not (changed / "mm").is_symlink()
    assert (changed / "scripts/memory.c").read_text() == "memory\n"
    assert not (changed / ".git").exists()
    assert (changed / "mm/feature.c").read_text() == "feature\n"
    lines = (changed / _FAULT).read_text().splitlines()
    assert lines[10] == "a new line"
    assert lines[30] == "another line 30"
    # The unchanged tree is as it was.
    assert (tree / _FAULT).read_text() == _ORIGINAL


def test_a_link_is_short_wherever_the_tree_is(tree: Path, tmp_path: Path) -> None:
    name = "drivers/net/ethernet/mellanox/mlx5/core/steering/sws/dr_action.c"
    _write(tree, name)
    _write(tree, "Documentation/a.rst")
    partial = tmp_path / ("long" * 20) / "tree.partial"
    overlay.link_tree(tree, partial)
    changed = partial.rename(partial.with_suffix(""))
    assert (changed / name).read_text() == name
    assert (changed / "Documentation/a.rst").read_text() == "Documentation/a.rst"
    links = [path for path in changed.rglob("*") if path.is_symlink()]
    # ext4 keeps a target of at most 59 bytes in the link's inode.
    assert [path for path in links if len(str(path.readlink())) > 59] == [changed / ".unchanged"]


def test_a_hook_applies_at_any_offset_or_names_the_line(
    tree: Path, release: Release, tmp_path: Path
) -> None:
    (tree / _FAULT).write_text("a point release adds lines\n" * 25 + _ORIGINAL)
    overlay.link_tree(tree, tmp_path / "changed")
    overlay.apply(_FEATURE, release, tmp_path / "changed")
    assert "line 10\na new line\nline 11\n" in (tmp_path / "changed" / _FAULT).read_text()
    with pytest.raises(UserError, match=r"has mm/feature.c already"):
        overlay.apply(_FEATURE, release, tmp_path / "changed")
    (tree / _FAULT).write_text(_ORIGINAL.replace("line 31\n", "something else\n"))
    overlay.link_tree(tree, tmp_path / "other")
    with pytest.raises(UserError, match=rf"hooks of 6.12 do not.*patch failed: {_FAULT}:30, for "):
        overlay.apply(_FEATURE, release, tmp_path / "other")
    (tree / _FAULT).unlink()
    overlay.link_tree(tree, tmp_path / "third")
    with pytest.raises(UserError, match=f"{_FAULT}: No such file"):
        overlay.apply(_FEATURE, release, tmp_path / "third")


@pytest.mark.parametrize("name", release_names())
def test_each_new_file_and_hook_is_in_one_patch_that_says_why(name: str) -> None:
    release = load_release(name)
    each = (overlay.patches_of(release, series) for series in overlay.all_series())
    patches = {patch.name: patch for patches in each for patch in patches}.values()
    listed = [file for patch in patches for file in patch.files]
    assert len(listed) == len(set(listed))
    assert set(listed) == {
        str(path.relative_to(LINUX))
        for path in LINUX.rglob("*")
        if path.is_file()
        and path.parent != LINUX
        and path.relative_to(LINUX).parts[0] not in ("hooks", "configs", "covers")
    }
    hooks = {path.stem for path in release.hooks.glob("*.patch")}
    assert hooks == {patch.name for patch in patches if patch.hook(release)}
    tags = ("Fixes: ", "Link: ", "Cc: ", "Suggested-by: ", "   ")
    for patch in patches:
        lines = [line for line in patch.message.splitlines() if not line.startswith(tags)]
        assert all(len(line) <= 75 for line in [patch.subject, *lines]), patch.name
        assert len(patch.message.split()) >= 20, patch.name


def test_a_release_without_hooks_has_no_changed_kernel() -> None:
    with pytest.raises(UserError, match=r"linux/ has no hooks for 6\.1: choose `--arm stock`"):
        overlay.patches_of(load_release("6.1"))


@pytest.mark.parametrize("series", overlay.all_series())
def test_each_series_has_patches_and_a_cover_letter_if_they_are_many(series: str) -> None:
    count = max(len(overlay.patches_of(load_release(name), series)) for name in release_names())
    cover = overlay.all_series()[series].cover
    assert 0 < count <= (8 if cover else 2)
    if cover:
        # Plain text that fits a mail and a maintainer's patience.
        _, _, text = (LINUX / cover).read_text().partition("-->\n")
        assert len(text.split()) > 50 and len(text.splitlines()) <= 60
        # An address cannot be broken.
        assert not [line for line in text.splitlines() if len(line) > 72 and "https://" not in line]
        assert not re.search(r"\]\(|`|\{|<!--|\| ---", text)


# -- a user's patches


@pytest.fixture
def source(tree: Path, release: Release) -> KernelSource:
    return replace(fake_source(tree, release), version="6.12.7", kind="tree", given=tree)


def _patch(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_a_users_patch_that_does_not_fit_is_named_by_file_and_line(
    source: KernelSource, tmp_path: Path
) -> None:
    good = _patch(tmp_path, "0001-good.patch", _HOOK)
    patches.check_patches([good], source)
    out = "--- a/../secret\n+++ b/../secret\n@@ -1 +1 @@\n-a\n+b\n"
    for text, said in (
        (_HOOK.replace(" line 31", " line 32"),
         rf"does not apply to Linux 6.12.7 \(patch failed: {_FAULT}:30\)"),
        (_HOOK.replace("fault.c", "gone.c"), r"\(arch/arm64/mm/gone.c: No such file"),
        (out, r"changes \.\./secret"),
    ):  # fmt: skip
        with pytest.raises(UserError, match=f"^0002-bad.patch .*{said}"):
            patches.check_patches([_patch(tmp_path, "0002-bad.patch", text)], source)
    again = _patch(tmp_path, "0003-again.patch", _HOOK)
    with pytest.raises(UserError, match=r"0003-again.patch .*it has the change already"):
        patches.check_patches([good, again], source)
    assert (source.tree() / _FAULT).read_text() == _ORIGINAL


def test_a_series_names_the_mode_of_a_script(
    source: KernelSource, release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source.tree() / ".git").rmdir()
    (source.tree() / _FAULT).chmod(0o755)
    monkeypatch.setattr(overlay, "patches_of", lambda *_: [_FEATURE])
    series, out = overlay.Series("feature"), tmp_path / "out"
    (patch,) = overlay.write_series(source, series, out, "A. Developer <a@example.org>")
    assert re.search(r"^index \w+\.\.\w+ 100755$", patch.read_text(), re.M)
    assert re.search(r"^new file mode 100644$", patch.read_text(), re.M)


def test_a_series_may_add_change_move_and_remove_files(
    source: KernelSource, tmp_path: Path
) -> None:
    series = [
        _patch(tmp_path, "1", "--- /dev/null\n+++ b/mm/new.c\n@@ -0,0 +1 @@\n+one\n"),
        _patch(tmp_path, "2", "--- a/mm/new.c\n+++ b/mm/new.c\n@@ -1 +1 @@\n-one\n+two\n"),
        _patch(tmp_path, "3", "--- a/mm/memory.c\n+++ /dev/null\n@@ -1 +0,0 @@\n-memory\n"),
        _patch(tmp_path, "4", f"diff --git a/{_FAULT} b/mm/moved.c\nsimilarity index 100%\n"
               f"rename from {_FAULT}\nrename to mm/moved.c\n"),
    ]  # fmt: skip
    # As a home directory may be that has the store.
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    patches.check_patches(series, source)
    changed = tmp_path / "changed"
    overlay.link_tree(source.tree(), changed)
    patches.apply_patches(series, source.version, changed)
    assert (changed / "mm/new.c").read_text() == "two\n"
    assert (changed / "mm/moved.c").read_text() == _ORIGINAL
    assert not (changed / "mm/memory.c").exists() and not (changed / _FAULT).exists()
    assert (source.tree() / "mm/memory.c").exists()
