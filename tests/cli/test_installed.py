# SPDX-License-Identifier: GPL-2.0
"""The package as pip installs it: read-only, in a path with a space, run by another user."""

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

import pytest

from firsttouch.files import EXPERIMENTS, REPOSITORY
from firsttouch.survey.document import read_survey
from tests.support import made_results

pytestmark = pytest.mark.long


def build_wheel(folder: Path) -> Path:
    """Build the wheel as `pip install .` does, with the backend of requirements.lock."""
    # Built from a copy, without untracked files of the checkout.
    copy = folder / "source"
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY, capture_output=True, text=True, check=True,
    ).stdout.split("\0")  # fmt: skip
    for name in filter(None, listed):
        if (REPOSITORY / name).is_file() and not (REPOSITORY / name).is_symlink():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / name, copy / name)
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-index",
         "--no-build-isolation", "-w", folder, copy],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"no wheel was built; ./setup installs hatchling: {done.stderr}"
    (wheel,) = folder.glob("*.whl")
    return wheel


# The user who runs it if the tests run as root.
_NOBODY = 65534
_DEPENDENCIES = (
    "jinja2", "markupsafe", "rich", "markdown-it-py", "mdurl", "pygments", "argcomplete",
    "capstone", "pyelftools",
)  # fmt: skip


@dataclass(frozen=True)
class Installed:
    """A new environment with the wheel in it, and a home directory for its user."""

    command: Path
    home: Path

    def __call__(self, *arguments: str | Path, **extra: str) -> subprocess.CompletedProcess[str]:
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "XDG_"))
        }
        root = os.geteuid() == 0
        return subprocess.run(
            [self.command, *map(str, arguments)],
            cwd=self.home,
            env={**environment, "HOME": str(self.home), **extra},
            user=_NOBODY if root else None,
            group=_NOBODY if root else None,
            extra_groups=[] if root else None,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture(scope="module")
def installed() -> Iterator[Installed]:
    # pytest's own folders are closed to other users.
    with tempfile.TemporaryDirectory(prefix="firsttouch-installed-") as scratch:
        top = Path(scratch)
        top.chmod(0o777)
        environment, home = top / "my tools/env", top / "my home"
        venv.create(environment, symlinks=True, with_pip=False)
        (packages,) = environment.glob("lib/python3*/site-packages")
        for name in _DEPENDENCIES:
            package = distribution(name)
            for file in package.files or ():
                if ".." not in file.parts:
                    (packages / file).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(str(package.locate_file(file)), packages / file)
        subprocess.run(
            [sys.executable, "-m", "pip", "--python", environment / "bin/python", "install", "-q",
             "--no-deps", "--no-index", build_wheel(top)],
            check=True,
        )  # fmt: skip
        subprocess.run(["chmod", "-R", "a+rX,a-w", environment], check=True)
        home.mkdir()
        if os.geteuid() == 0:
            os.chown(home, _NOBODY, _NOBODY)
        made = Installed(environment / "bin/firsttouch", home)
        assert made("--version").returncode != 126, "other users cannot run the Python of .venv"
        yield made
        subprocess.run(["chmod", "-R", "u+w", environment], check=True)


def test_it_carries_all_that_the_checkout_has(installed: Installed) -> None:
    (data,) = installed.command.parent.parent.glob("lib/python3*/site-packages/firsttouch/data")
    wheel = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    folders = wheel["targets"]["wheel"]["force-include"]
    listed = subprocess.run(
        ["git", "ls-files", *folders], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout.split()
    for name in listed:
        original = REPOSITORY / name
        assert (data / name).read_bytes() == original.read_bytes(), name
        assert os.access(data / name, os.X_OK) == bool(original.stat().st_mode & 0o111), name


def test_it_has_a_manual(installed: Installed) -> None:
    for page in (REPOSITORY / "docs/reference/man").iterdir():
        assert (installed.command.parents[1] / "share/man/man1" / page.name).is_file()


def test_results_are_drawn_and_compared(installed: Installed, tmp_path: Path) -> None:
    folder = installed.home / "two results"
    for name in ("a", "b"):
        made_results.write(folder / name, made_results.plan(EXPERIMENTS, ["populate"]))
    if os.geteuid() == 0:
        subprocess.run(["chown", "-R", f"{_NOBODY}:{_NOBODY}", folder], check=True)
    done = installed("report", folder / "a")
    assert done.returncode == 0, done.stderr
    assert "<svg" in (folder / "a/report.html").read_text()
    done = installed("compare", "two results/a", "two results/b")
    assert done.returncode == 0, done.stderr
    assert "populate" in done.stdout or "no figure differs" in done.stdout


def test_it_says_what_a_run_would_do(installed: Installed) -> None:
    done = installed("lab", "--dry-run", XDG_CACHE_HOME=str(installed.home.with_name("store")))
    assert done.returncode == 0, done.stderr
    assert "builds " in done.stdout and "Nothing was built or run." in done.stdout
    assert not (installed.home / "out").exists()


def test_who_has_no_home_is_told_where_the_store_may_go(installed: Installed) -> None:
    assert installed("lab", "--list", HOME="/sys/no-home").returncode == 0
    for line in ("lab --dry-run", "survey --seconds 5"):
        done = installed(*line.split(), HOME="/sys/no-home")
        assert done.returncode == 2
        (sentence,) = done.stderr.splitlines()
        assert "/sys/no-home" in sentence
        assert "XDG_CACHE_HOME" in sentence


def test_a_users_own_machine_and_arm_are_found(installed: Installed) -> None:
    folder = installed.home / ".config/firsttouch"
    (folder / "machines").mkdir(parents=True)
    shutil.copy(REPOSITORY / "machines/neoverse-n1.toml", folder / "machines/mine.toml")
    done = installed("lab", "--machine", "mien")
    assert "did you mean 'mine'?" in done.stderr
    shutil.copy(REPOSITORY / "machines/neoverse-n1.toml", folder / "machines/neoverse-n1.toml")
    done = installed("lab", "--machine", "neoverse-n1")
    assert done.returncode == 2
    (sentence,) = done.stderr.splitlines()
    assert f"{folder}/machines/neoverse-n1.toml" in sentence and "another name" in sentence
    shutil.rmtree(folder)


def test_a_survey_where_every_path_has_a_space(installed: Installed) -> None:
    """ftbench, too, is built in the store, from read-only sources."""
    done = installed("survey", "--seconds", "5", "--out", "my survey")
    assert done.returncode == 0, done.stderr
    assert read_survey(installed.home / "my survey").samples
