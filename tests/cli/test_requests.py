# SPDX-License-Identifier: GPL-2.0
"""Bad requests: exit status 2, one sentence that says what to do, no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from firsttouch.cli.main import main
from firsttouch.places import REPOSITORY
from tests.conftest import FAKE_CONFIGURATION, Firsttouch
from tests.support.checkouts import copy_checkout
from tests.support.full_disk import small_disk
from tests.support.warm import Finished


def _refused(done: Finished, *fragments: str) -> None:
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    # One sentence, on the last line; the lines before it are progress.
    *progress, sentence = done.stderr.strip().splitlines()
    assert sentence.startswith("firsttouch: "), done.stderr
    assert not any(line.startswith("firsttouch: ") for line in progress)
    for fragment in fragments:
        assert fragment in sentence


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        (["lab", "--machine", "neoverse-n11"], ["'neoverse-n11'", "did you mean 'neoverse-n1'"]),
        (["lab", "--experiment", "poplate"], ["'poplate'", "did you mean 'populate'"]),
        (["lab", "--arm", "of"], ["'of'", "did you mean 'off'"]),
        (["lab", "--release", "6.1"], ["'6.1'", "did you mean '6.12'"]),
        (["lab", "--size", "0"], ["'0'", "more than 0 bytes"]),
        (["lab", "--size=-4096"], ["'-4096'", "not a size"]),
        (["lab", "--size", "many"], ["'many'", "not a size"]),
        (["lab", "--size", "1T"], ["'1T'", "not a size"]),
        (["lab", "--size", "64G"], ["larger than a guest of 4 GiB", "at most"]),
        (["lab", "--set", "by"], ["write PARAM=VALUE"]),
        (["lab", "--set", "bye=ldadd"], ["no such parameter", "'by'"]),
        (["lab", "--set", "by=ldad"], ["no such value", "'ldadd'"]),
        (["lab", "--experiment", "populate", "--set", "page=3k"], ["no such value"]),
        (["lab", "--experiment", "populate", "--size", "100"], ["size is 100", "at least 4 KiB"]),
        (["lab", "--jobs", "0"], ["--jobs 0", "at least 1"]),
        (["lab", "--on", "slurms"], ["--on slurms", "slurm:PARTITION"]),
        (["lab", "--on", "slurm:"], ["--on slurm:", "slurm:PARTITION"]),
        (["lab", "--workers", "2"], ["--workers 2", "--on slurm"]),
        (["lab", "--on", "slurm", "--workers", "0"], ["--workers 0", "at least 1"]),
        (["lab", "--release", "6.12", "--source", "/"], ["exclude each other"]),
        (["lab", "--source", "/nowhere"], ["/nowhere holds no Linux kernel source"]),
        (["lab", "--sise", "1"], ["unrecognized arguments", "--help"]),
        (["brew"], ["invalid choice", "--help"]),
        ([], ["required", "--help"]),
        (["kernel"], ["required", "--help"]),
        (["store"], ["required", "--help"]),
        (["store", "prune"], ["--keep", "--help"]),
        (["store", "prune", "--keep", "some"], ["--keep", "'some'", "not a size"]),
        (["report", "nowhere"], ["nowhere is not a directory"]),
        (["compare", "nowhere", "."], ["nowhere is not a directory"]),
        (["compare", ".", "."], ["results.jsonl cannot be read"]),
        (["kernel", "series", "--release", "5.4"], ["unknown release '5.4'"]),
        (["kernel", "series", "--feature", "colour"], ["no such series", "color-zero-page"]),
        (["kernel", "series", "--author", "Jane"], ["'Jane' is no author", "Name <address>"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_bad_request_is_refused_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str], arguments: list[str], fragments: list[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    status = main(arguments)
    printed = capsys.readouterr()
    _refused(Finished(arguments, status, printed.out, printed.err), *fragments)


@pytest.mark.parametrize(
    "arguments", [["lab", "--arm", "of"], ["brew"], ["report", "nowhere"]], ids=" ".join
)
def test_the_process_ends_with_the_status_of_a_refusal(
    firsttouch: Firsttouch, arguments: list[str]
) -> None:
    _refused(firsttouch(*arguments))


_IMPORTED = """
import sys
from firsttouch.cli.main import main
status = main(sys.argv[1:])
print(*sys.modules, file=sys.stderr)
sys.exit(status)
"""


@pytest.mark.parametrize(
    "line",
    ["--help", "--version", "store list", "doctor --help", "kernel --help", "completion --help"],
)
def test_a_short_command_does_not_import_the_others(line: str, own_cache: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _IMPORTED, *line.split()],
        cwd=REPOSITORY, capture_output=True, text=True, check=True,
    )  # fmt: skip
    modules = done.stderr.split()
    rooms = {".".join(name.split(".")[:2]) for name in modules}
    assert "firsttouch.cli" in rooms
    long = {"analysis", "finder", "output", "survey", "trace"}
    assert not rooms & {f"firsttouch.{room}" for room in long}
    # These take most of the time of the commands that need them.
    assert not rooms & {"jinja2", "capstone", "elftools"}


def test_help_ends_in_examples(firsttouch: Firsttouch) -> None:
    done = firsttouch("--help")
    assert done.returncode == 0
    assert "examples:" in done.stdout


def test_an_output_directory_that_cannot_be_written(firsttouch: Firsttouch) -> None:
    # Root may write anywhere but here.
    _refused(firsttouch("lab", "--out", "/proc/firsttouch"), "cannot write to", "--out")
    (firsttouch.directory / "file").write_text("")
    _refused(firsttouch("lab", "--out", "file/out"), "cannot write to", "--out")


def test_a_series_has_no_author_that_nobody_named(
    firsttouch: Firsttouch, fake_linux: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(name, "/dev/null")
    _refused(firsttouch("kernel", "series", "--source", fake_linux), "--author 'Name <address>'")


def test_a_tree_that_was_built_in(firsttouch: Firsttouch, fake_linux: Path) -> None:
    (fake_linux / ".config").touch()
    _refused(firsttouch("lab", "--source", fake_linux), "make mrproper")


def test_a_tree_without_a_version(firsttouch: Firsttouch, fake_linux: Path) -> None:
    (fake_linux / "Makefile").write_text("all:\n")
    _refused(firsttouch("lab", "--source", fake_linux), "states no kernel version")


def test_a_tree_to_which_the_hooks_do_not_apply(
    firsttouch: Firsttouch, fake_linux: Path, own_cache: Path
) -> None:
    done = firsttouch("kernel", "series", "--source", fake_linux, "--author", "A <a@b>")
    _refused(done, "hooks of 6.12 do not apply", "it has no ")


@pytest.mark.long
@pytest.mark.parametrize(
    ("tool", "command"),
    [
        ("qemu-system-aarch64", "lab --arm stock --experiment read-fault"),
        ("aarch64-linux-gnu-gcc", "lab --arm stock --experiment read-fault"),
        ("clang", "lab --arm stock --experiment update-kinds"),
        ("dh_builddeb", "kernel package"),
    ],
)
def test_a_missing_tool_is_named(
    firsttouch: Firsttouch, fake_linux: Path, configured_cache: Path, tmp_path: Path,
    tool: str, command: str,
) -> None:  # fmt: skip
    tools = tmp_path / "bin"
    tools.mkdir()
    for folder in ("/usr/bin", "/bin", "/usr/sbin", "/sbin"):
        for program in Path(folder).iterdir():
            if program.name != tool and not (tools / program.name).exists():
                (tools / program.name).symlink_to(program)
    image = tmp_path / "Image"
    image.write_bytes(b"not booted: the tool is missed before")
    done = firsttouch(
        *command.split(), "--source", fake_linux, PATH=str(tools), FAKE_IMAGE=str(image)
    )
    _refused(done, f"{tool} is missing", "firsttouch doctor")


def test_a_build_that_fails_shows_the_compilers_error(
    firsttouch: Firsttouch, fake_linux: Path, configured_cache: Path
) -> None:
    done = firsttouch("kernel", "build", "--stock", "--source", fake_linux, FAKE_FAILS="part7")
    assert done.returncode == 1
    assert "mm/part7.c:7:3: error: 'vma' undeclared" in done.stderr
    assert "the whole log is" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long
def test_a_full_disk(firsttouch: Firsttouch, fake_linux: Path, tmp_path: Path) -> None:
    image = tmp_path / "Image"
    image.write_bytes(b"x" * (1 << 20))
    with small_disk(tmp_path / "small", 256 << 10) as disk:
        fetched, built = (
            subprocess.run(
                disk.command(firsttouch.command("kernel", *command)),
                env=firsttouch.environment(FAKE_IMAGE=str(image), XDG_CACHE_HOME=str(disk.path)),
                cwd=tmp_path, capture_output=True, text=True, check=False,
            )
            for command in (
                ("fetch", "--configuration", FAKE_CONFIGURATION),
                ("build", "--stock", "--source", fake_linux),
            )
        )  # fmt: skip
    assert fetched.returncode == 0, fetched.stderr
    _refused(built, "No space left on device", "XDG_CACHE_HOME")


# -- a change of the data files, in a copy of the checkout


@pytest.fixture
def copied(tmp_path: Path, listing_cache: Path) -> Path:
    """A separate checkout, and a store that contains only the ftbench that is listed."""
    return copy_checkout(tmp_path / "a checkout")


def _in(copied: Path, *arguments: str) -> Finished:
    return subprocess.run(
        [sys.executable, "-m", "firsttouch", *arguments],
        cwd=copied.parent, env={**os.environ, "PYTHONPATH": str(copied)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("file", "change", "fragments"),
    [
        # Other mistakes in an experiment: tests/catalog/test_contract.py.
        ("experiments/populate.toml", ('"ldadd"', '"lddad"'),
         ["populate.toml: parameters.by", "'lddad'", "did you mean 'ldadd'"]),
        ("machines/neoverse-n1.toml", ('cpu = "neoverse-n1"', 'cpu = "neoverse-n11"'),
         ["neoverse-n1.toml: cpu", "'neoverse-n11'", "did you mean 'neoverse-n1'"]),
        ("linux/hooks/6.12/source.toml", ("objects =", "object ="),
         ["6.12/source.toml: objects is missing", "'object'"]),
        ("linux/hooks/6.12/source.toml", ("objects =", 'sutes = ["sid"]\nobjects ='),
         ["6.12/source.toml: sutes", "did you mean 'suites'"]),
        ("arms/stock.toml", ('kernel = "stock"', 'kernel = "stok"'),
         ["stock.toml: kernel", "'stok'", "did you mean 'stock'"]),
    ],
)  # fmt: skip
def test_a_mistake_in_a_data_file_is_named_before_anything_is_built(
    copied: Path, own_cache: Path, file: str, change: tuple[str, str], fragments: list[str]
) -> None:
    text = (copied / file).read_text()
    assert change[0] in text
    (copied / file).write_text(text.replace(*change, 1))
    _refused(_in(copied, "lab", "--experiment", "populate"), *fragments)
    for shelf in ("images", "trees", "packages"):
        assert not (own_cache / shelf).exists()


def test_a_heap_in_the_wrong_unit_is_named(copied: Path) -> None:
    file = copied / "experiments/openjdk-pretouch.toml"
    file.write_text(file.read_text().replace('heap = "512M"', 'heap = ["512M", "512MM"]'))
    _refused(
        _in(copied, "lab", "--experiment", "openjdk-pretouch"),
        "openjdk-pretouch.toml: parameters.heap", "'512MM'", "such as 64M",
    )  # fmt: skip


@pytest.mark.long
def test_a_broken_file_stops_what_needs_it_and_nothing_else(copied: Path, own_cache: Path) -> None:
    (copied / "experiments/broken.toml").write_text("title = ")
    _refused(_in(copied, "lab"), "broken.toml: not valid TOML")
    # Not even the half of the answer that needs no build.
    assert [shelf.name for shelf in own_cache.iterdir() if any(shelf.iterdir())] == ["programs"]
    _refused(_in(copied, "lab", "--experiment", "broken"), "broken.toml: not valid TOML")
    # The last thing that is checked before the build.
    _refused(_in(copied, "lab", "--experiment", "populate", "--out", "/proc/out"), "/proc/out")
    assert _in(copied, "lab", "--help").returncode == 0


@pytest.mark.parametrize("option", ["--size", "--release", "--out", "--layouts", "--jobs"])
def test_an_option_with_two_values_is_refused(
    capsys: pytest.CaptureFixture[str], option: str
) -> None:
    assert main(["lab", option, "4", option, "4", option, "5"]) == 2
    assert f"{option} has two values, 4 and 5: give one." in capsys.readouterr().err
