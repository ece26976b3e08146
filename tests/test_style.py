# SPDX-License-Identifier: GPL-2.0
"""The whole repository: licences, lints, layers, nothing that belongs to one machine."""

import lzma
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from firsttouch.building.source import KernelSource
from firsttouch.files import REPOSITORY

# Their format has no place for a comment, or they are the licence.
# Results, recordings and expected output are as a run wrote them.
_WITHOUT_SPDX = ("LICENSES/", ".gitignore", "tests/data/")
# A mirror comes from the machine's configuration, a package by its name.
_REGISTRY_HOSTS = (
    *(b"%s.debian.org" % name for name in (b"deb", b"security", b"ftp", b"snapshot")),
    b"pypi.org", b"pythonhosted.org", b"npmjs", b"crates.io",
)  # fmt: skip


def _tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--", *patterns],
        cwd=REPOSITORY, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [path for name in listed.stdout.splitlines() if (path := REPOSITORY / name).is_file()]


def test_every_file_names_its_licence() -> None:
    without = [
        str(name)
        for path in _tracked()
        if not str(name := path.relative_to(REPOSITORY)).startswith(_WITHOUT_SPDX)
        # A hook is a difference; the file it changes names its own licence. Packed results
        # are named by the file that declares them.
        and path.suffix not in (".patch", ".xz")
        and "SPDX-License-Identifier: GPL-2.0" not in path.read_text(errors="replace")[:200]
    ]
    assert not without


def test_each_class_has_a_name_of_its_own() -> None:
    places: dict[str, list[str]] = {}
    for path in _tracked("firsttouch/*.py"):
        for name in re.findall(r"^class (\w+)|^(\w+): TypeAlias", path.read_text(), re.M):
            places.setdefault("".join(name), []).append(str(path.relative_to(REPOSITORY)))
    assert len(places) > 100
    assert not {name: where for name, where in places.items() if len(where) > 1}


def test_every_link_between_pages_leads_to_a_file_and_a_heading() -> None:
    broken = [
        f"{page.relative_to(REPOSITORY)}: {link}#{heading}"
        for page in _tracked("*.md")
        for link, heading in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", page.read_text())
        if "://" not in link and not _leads(page.parent / link if link else page, heading)
    ]
    assert not broken


def _leads(file: Path, heading: str) -> bool:
    if not heading or not file.is_file():
        return file.exists() and not heading
    titles = re.findall(r"^#+ (.*)$", file.read_text(), re.M)
    return heading in {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_no_registry_is_named_by_its_host() -> None:
    naming = [
        str(path.relative_to(REPOSITORY))
        for path in _tracked()
        if path != Path(__file__)
        and (contents := _contents(path))
        and any(host in contents for host in _REGISTRY_HOSTS)
    ]
    assert not naming


def _contents(path: Path) -> bytes:
    return lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()


@pytest.mark.parametrize(
    "command",
    [
        ["ruff", "check", "."],
        ["ruff", "format", "--check", "."],
        ["mypy"],
        ["lint-imports"],
    ],
    ids=" ".join,
)
def test_python_is_lint_clean(command: list[str]) -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name(command[0]), *command[1:]],
        cwd=REPOSITORY, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_untyped_data_ends_in_one_module() -> None:
    """Any and cast are refused by ruff; a comment that silences mypy, here and in make lint."""
    silenced = [
        str(path.relative_to(REPOSITORY))
        for path in _tracked("docs/*.py", "firsttouch/*.py")
        if "type: ignore" in path.read_text() and path.name != "tables.py"
    ]
    assert not silenced


@pytest.mark.kernel
@pytest.mark.parametrize("folder", ["bench", "guest", "pmu", "recorder", "linux/tools"])
def test_c_outside_the_kernel_has_the_kernels_style(
    sources: Callable[[str], KernelSource], folder: str
) -> None:
    """Errors and checks of form; the .checkpatch.conf there leaves out what is only a kernel's."""
    checkpatch = sources("6.12").tree() / "scripts/checkpatch.pl"
    files = _tracked(f"{folder}/*.c", f"{folder}/*.h")
    assert files
    done = subprocess.run(
        ["perl", checkpatch, "--strict", "--no-tree", "--terse", "--quiet", "-f", *files],
        cwd=REPOSITORY / "tests/data", capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def _calls(objects: Iterable[Path]) -> dict[str, set[str]]:
    """The files that have what each file does not define itself; x.c of any folder is x."""
    home: dict[str, str] = {}
    needs: dict[str, set[str]] = {}
    for path in objects:
        # gcc's own: it reads objects of link-time optimisation.
        listed = subprocess.run(
            ["gcc-nm", "--extern-only", "--format=posix", path],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        symbols = [line.split()[:2] for line in listed.splitlines()]
        needs.setdefault(path.stem, set()).update(name for name, kind in symbols if kind == "U")
        home |= {name: path.stem for name, kind in symbols if kind != "U"}
    return {
        file: {home[name] for name in names & home.keys()} - {file} for file, names in needs.items()
    }


@pytest.mark.long
@pytest.mark.parametrize(
    ("folder", "words", "order"),
    [
        ("bench", ["CROSS_COMPILE="], ("result", "ftbench")),
        # Without registers, with them, with a page-table walk, and pointers for all callbacks.
        *(("pmu", [f"API={api}"], ("cache", "hierarchy", "plugin")) for api in (1, 4, 5, 7)),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_calls_between_files_go_one_way(
    tmp_path: Path, folder: str, words: list[str], order: tuple[str, ...]
) -> None:
    target = [str(tmp_path / "ftbench")] if folder == "bench" else []
    make = ["make", "-s", "-j2", f"-C{REPOSITORY / folder}", f"OUTPUT={tmp_path}", *words, *target]
    subprocess.run(make, check=True)
    graph = _calls(tmp_path.rglob("*.o"))
    assert graph.keys() >= {file.stem for file in (REPOSITORY / folder).glob("*.c")}
    # A cycle is an error.
    places = list(TopologicalSorter(graph).static_order())
    assert sorted(order, key=places.index) == list(order)
