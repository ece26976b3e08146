# SPDX-License-Identifier: GPL-2.0
"""What a guest is given: the same bytes for every user, place and language."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from firsttouch.files import REPOSITORY

pytestmark = pytest.mark.kernel

# What `firsttouch` reads and builds.
_FOLDERS = (
    "firsttouch", "experiments", "machines", "architectures", "arms", "linux", "bench", "guest",
    "pmu",
)  # fmt: skip


# What is made, by name, with its digest. The kernel stands for any file.
_MAKE = """
import json, os, sys
from pathlib import Path
import firsttouch
from firsttouch.building.programs import FileDisk, RootDisk
from firsttouch.building.programs import BENCH, INIT, PMU
from firsttouch.catalog.experiments import Packages
from firsttouch.catalog.machines import load_machine
from firsttouch.files import digest_bytes, digest_file
from firsttouch.progress import Reporter
from firsttouch.vm.guest import Guest
from firsttouch.vm.qemu import guest_archive
from firsttouch.vm.guest import Pmu
from firsttouch.vm.qemu import guest_key
os.umask(int(sys.argv[1], 8))
reporter = Reporter()
image = Path(os.environ["XDG_CACHE_HOME"], "Image")
image.write_bytes(b"a kernel")
ftbench, init, pmu = BENCH.obtain(reporter), INIT.obtain(reporter), PMU.obtain(reporter)
file_disk = FileDisk(1 << 20).obtain(reporter)
root_disk = RootDisk(Packages("trixie", ("busybox-static",))).obtain(reporter)
guest = Guest(
    image, init, load_machine("neoverse-n1"), ("quiet",), ("/ftbench --list",),
    {"/ftbench": ftbench}, disk=file_disk, pmu=Pmu(pmu, True),
)
made = {path.name: digest_file(path) for path in (ftbench, init, pmu)}
print(json.dumps({
    **made,
    "file disk": digest_file(file_disk), "root disk": digest_file(root_disk),
    "initial RAM disk": digest_bytes(guest_archive(guest)), "key": guest_key(guest),
    "images": [str(file_disk), str(root_disk)], "checkout": firsttouch.__file__,
}))
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that every user can reach, which those of pytest are not."""
    with tempfile.TemporaryDirectory(prefix="firsttouch-same-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def _make(place: Path, checkout: str, umask: str, user: int, **environment: str) -> dict[str, str]:
    """Make everything in a copy of the checkout, as `user` if that can be chosen."""
    copy = place / checkout
    for name in _FOLDERS:
        shutil.copytree(REPOSITORY / name, copy / name, symlinks=True,
                        ignore=shutil.ignore_patterns("__pycache__"))  # fmt: skip
    libraries = place / "libraries"
    if not libraries.exists():
        for name in ("rich", "pygments", "markdown_it", "mdurl"):
            spec = importlib.util.find_spec(name)
            assert spec and spec.origin, f"the Python package {name} is missing: run ./setup"
            shutil.copytree(Path(spec.origin).parent, libraries / name)
    store, script = copy / "the store", copy / "make.py"
    store.mkdir()
    script.write_text(_MAKE)
    as_user: list[str] = []
    if os.geteuid() == 0 and user:
        assert shutil.which("setpriv"), "setpriv is missing: install the package util-linux"
        as_user = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        for path in (copy, *copy.rglob("*")):
            os.chown(path, user, user, follow_symlinks=False)
    done = subprocess.run(
        # The interpreter behind the environment's, which another user may not reach.
        [*as_user, Path(sys.executable).resolve(), script, umask],
        cwd=copy,
        env={
            "PATH": os.environ["PATH"], "HOME": str(store), "XDG_CACHE_HOME": str(store),
            "PYTHONPATH": f"{copy}:{libraries}", "PYTHONDONTWRITEBYTECODE": "1", **environment,
        },
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    made: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    assert made.pop("checkout").startswith(str(copy))
    for image in made.pop("images"):
        subprocess.run(["e2fsck", "-fn", image], check=True, capture_output=True)
    return made


def test_another_user_makes_the_same(place: Path) -> None:
    """Other owner, umask, locale, time zone and time; checkout and store in another place."""
    mine = _make(place, "one", "022", os.geteuid(), LC_ALL="C", TZ="UTC")
    # A locale that does not sort names by their bytes, and a time zone far from UTC.
    zone = {"LC_ALL": "C.UTF-8", "TZ": "Asia/Kathmandu"}
    assert _make(place, "an other, one", "077", 65534, **zone) == mine
    assert len(mine) == 7
