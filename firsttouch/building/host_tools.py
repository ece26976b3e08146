# SPDX-License-Identifier: GPL-2.0
"""The tools of this host on which built things depend: compilers, linker, ccache, QEMU.

ccache keeps its objects in a directory of the store. No recipe names it: a build gives the same
bytes with an empty, a filled or no cache. docs/explanation/identical-runs.md says why.
"""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

from firsttouch.building.store import CCACHE, store_root
from firsttouch.catalog.kernels import DEFAULT_ARCHITECTURE, load_architecture
from firsttouch.errors import HostError
from firsttouch.files import digest, write_atomically
from firsttouch.processes import missing, output

QEMU = "qemu-system-aarch64"
DTC = "dtc"
_GROUPS = Path("/sys/fs/cgroup")


def cross_compile(architecture: str = DEFAULT_ARCHITECTURE) -> str:
    """Return the prefix of an architecture's tools; empty on a host of that architecture."""
    wanted = load_architecture(architecture)
    return "" if platform.machine() == wanted.machine else wanted.prefix


def processors() -> int:
    """Return how many CPUs this process may use, those of its control groups' quota at most."""
    quotas = [max(1, quota // period) for quota, period in _limits("cpu.max")]
    return min([len(os.sched_getaffinity(0)), *quotas])


def available_memory() -> int:
    """Return the bytes that new processes can use without swapping, within their control groups."""
    meminfo = Path("/proc/meminfo").read_text()
    available = int(re.findall(r"^MemAvailable: *(\d+)", meminfo, re.M)[0]) * 1024
    return min([available, *(limit for (limit,) in _limits("memory.max"))])


def _limits(name: str) -> Iterator[list[int]]:
    """Yield what file `name` of each control group (version 2) of this process limits."""
    with contextlib.suppress(OSError):
        for group in re.findall(r"^0::/?(.*)$", Path("/proc/self/cgroup").read_text(), re.M):
            for path in (group, *Path(group).parents):
                with contextlib.suppress(OSError, ValueError):
                    yield [int(word) for word in (_GROUPS / path / name).read_text().split()]


@functools.cache
def version(tool: str = QEMU) -> str:
    """Return the first line of what a tool prints for --version; HostError if it is missing."""
    return output([tool, "--version"]).splitlines()[0]


def toolchain(prefix: str) -> str:
    return f"{version(f'{prefix}gcc')}; {version(f'{prefix}ld')}"


def check_plugins() -> None:
    if not re.search(r"^-plugin\b", output([find_tool(QEMU), "--help"]), re.M):
        raise HostError(
            f"{find_tool(QEMU)} was built without plugins, which count here: put a QEMU with them "
            "first on PATH, such as that of Debian's qemu-system-arm."
        )


@functools.cache
def qemu_cpus() -> tuple[str, ...]:
    lines = output([find_tool(QEMU), "-M", "virt", "-cpu", "help"]).splitlines()
    # A headline, then one indented line per CPU.
    return tuple(line.split()[0] for line in lines if line[:1].isspace() and line.strip())


def find_tool(tool: str) -> str:
    if path := shutil.which(tool):
        return path
    raise missing(tool)


# Kbuild names the source last. Standard input has to stay unread for the compiler.
_COMPILE = r"""for source; do :; done
[ -f "$source" ] && grep -q '\.incbin' "$source" && exec "$@"
unset {users}
export {settings}
exec ccache "$@"
"""


def ccache(tree: Path, objects: Path, prefix: str) -> list[str]:
    """Return the variables of make that run a kernel's compilers by ccache; none without it.

    Its depend mode preprocesses nothing: a first build takes a quarter less. It does not see a new
    header that hides one (hence `_header_names`), nor the bytes of an .incbin (hence `_COMPILE`,
    put into `objects`). Of the user's settings the size counts, and whether to use it.
    """
    if shutil.which(CCACHE) is None:
        return []
    folder, script = store_root() / CCACHE, objects / "firsttouch-compile"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "used").touch()
    users = {name for name in os.environ if name.startswith("CCACHE_")} - {"CCACHE_DISABLE"}
    settings = {
        "CCACHE_MAXSIZE": os.environ.get("CCACHE_MAXSIZE", "8G"),
        "CCACHE_DIR": folder,
        "CCACHE_DEPEND": 1,
        "CCACHE_CONFIGPATH": os.devnull,
        "CCACHE_CONFIGPATH2": os.devnull,
        "CCACHE_COMPILERCHECK": f"string:{toolchain(prefix)}; {version('gcc')}",
    }
    words = shlex.join(f"{name}={value}" for name, value in settings.items())
    write_atomically(script, _COMPILE.format(users=" ".join(users), settings=words))
    define = f"-DFIRSTTOUCH_HEADERS={_header_names(tree)}"
    compilers = {"CC": f"{prefix}gcc", "HOSTCC": "gcc"}
    return [f"{name}=sh {script} {compiler} {define}" for name, compiler in compilers.items()]


@functools.cache
def _header_names(tree: Path) -> str:
    """Return the digest of the headers in `tree` whose name another one has, too.

    Only such a one can hide another. The build makes some for <asm/...>: all of that folder count.
    """
    places: dict[str, list[str]] = {}
    headers = output(["find", ".", "-name", "*.h", "-o", "-name", "*.inc"], cwd=tree)
    for place, _, name in (header.rpartition("/") for header in headers.splitlines()):
        places.setdefault(name, []).append(place)
    alike = [
        (name, sorted(at)) for name, at in places.items() if len(at) > 1 or at[0].endswith("/asm")
    ]
    return digest(sorted(alike))[:16]
