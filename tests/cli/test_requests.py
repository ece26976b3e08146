# SPDX-License-Identifier: GPL-2.0
"""Bad requests: exit status 2, one sentence that names the mend, no traceback."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY, Finished, Firsttouch


def _refused(done: Finished, *fragments: str) -> None:
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    # One sentence, the last; what went before it is progress.
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
        (["lab", "--release", "6.12", "--source", "/"], ["exclude each other"]),
        (["lab", "--source", "/nowhere"], ["/nowhere holds no Linux kernel source"]),
        (["lab", "--sise", "1"], ["unrecognized arguments", "--help"]),
        (["brew"], ["invalid choice", "--help"]),
        ([], ["required", "--help"]),
        (["kernel"], ["required", "--help"]),
        (["kernel", "series", "--release", "5.4"], ["unknown release '5.4'"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_bad_request_is_refused_in_one_sentence(
    firsttouch: Firsttouch, arguments: list[str], fragments: list[str]
) -> None:
    _refused(firsttouch(*arguments), *fragments)


def test_help_ends_in_examples(firsttouch: Firsttouch) -> None:
    done = firsttouch("--help")
    assert done.returncode == 0
    assert "examples:" in done.stdout


def test_an_output_directory_that_cannot_be_written(firsttouch: Firsttouch) -> None:
    # Root may write anywhere but here.
    _refused(firsttouch("lab", "--out", "/proc/firsttouch"), "cannot write to", "--out")
    (firsttouch.directory / "file").write_text("")
    _refused(firsttouch("lab", "--out", "file/out"), "cannot write to", "--out")


def test_a_tree_that_was_built_in(firsttouch: Firsttouch, fake_linux: Path) -> None:
    (fake_linux / ".config").touch()
    _refused(firsttouch("lab", "--source", fake_linux), "make mrproper")


def test_a_tree_without_a_version(firsttouch: Firsttouch, fake_linux: Path) -> None:
    (fake_linux / "Makefile").write_text("all:\n")
    _refused(firsttouch("lab", "--source", fake_linux), "states no kernel version")


def test_a_tree_to_which_the_hooks_do_not_apply(
    firsttouch: Firsttouch, fake_linux: Path, own_cache: Path
) -> None:
    done = firsttouch("kernel", "series", "--source", fake_linux)
    _refused(done, "hooks of 6.12 do not apply", "it has no ")


@pytest.mark.parametrize("tool", ["qemu-system-aarch64", "aarch64-linux-gnu-gcc"])
def test_a_missing_tool_is_named(
    firsttouch: Firsttouch, fake_linux: Path, own_cache: Path, tmp_path: Path, tool: str
) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for folder in ("/usr/bin", "/bin", "/usr/sbin", "/sbin"):
        for program in Path(folder).iterdir():
            if program.name != tool and not (tools / program.name).exists():
                (tools / program.name).symlink_to(program)
    image = tmp_path / "Image"
    image.write_bytes(b"not booted: the tool is missed before")
    done = firsttouch(
        "lab", "--source", fake_linux, "--arm", "stock", "--experiment", "read-fault",
        PATH=str(tools), FAKE_IMAGE=str(image),
    )  # fmt: skip
    _refused(done, f"{tool} is missing: run ./setup as root.")


def test_a_build_that_fails_shows_the_compilers_error(
    firsttouch: Firsttouch, fake_linux: Path, own_cache: Path
) -> None:
    done = firsttouch("kernel", "build", "--stock", "--source", fake_linux, FAKE_FAILS="part7")
    assert done.returncode == 1
    assert "mm/part7.c:7:3: error: 'vma' undeclared" in done.stderr
    assert "the whole log is" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_full_disk(firsttouch: Firsttouch, fake_linux: Path, tmp_path: Path) -> None:
    """A cache on a small tmpfs: mounted in a namespace of its own, which needs no root."""
    script = (
        f"mount -t tmpfs -o size=256k tmpfs {tmp_path}/small && cd {tmp_path} && "
        f"XDG_CACHE_HOME={tmp_path}/small exec "
        + " ".join(firsttouch.command("kernel", "build", "--stock", "--source", fake_linux))
    )
    (tmp_path / "small").mkdir()
    image = tmp_path / "Image"
    image.write_bytes(b"x" * (1 << 20))
    done = subprocess.run(
        ["unshare", "--map-root-user", "--mount", "sh", "-c", script],
        env=firsttouch.environment(FAKE_IMAGE=str(image)),
        capture_output=True,
        text=True,
        check=False,
    )
    _refused(done, "No space left on device", "XDG_CACHE_HOME")


def test_doctor_says_what_each_package_is_for(firsttouch: Firsttouch) -> None:
    done = firsttouch("doctor")
    assert done.returncode == 0, done.stderr
    for line in (REPOSITORY / "packages.list").read_text().splitlines():
        if line.startswith("qemu-system-arm "):
            assert "qemu-system-arm" in done.stdout and "the machine" in done.stdout
