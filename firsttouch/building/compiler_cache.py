# SPDX-License-Identifier: GPL-2.0
"""Objects of kernels, compiled once: ccache, in a directory of the store.

No recipe names it: a build gives the same bytes with an empty, a filled or no
cache. docs/identical-runs.md says why.
"""

from __future__ import annotations

import functools
import os
import shutil
from pathlib import Path

from firsttouch.building.host_tools import compiler_version, cross_compile, toolchain_identity
from firsttouch.building.store import note_use, store_root
from firsttouch.catalog.architectures import DEFAULT_ARCHITECTURE, load_architecture
from firsttouch.files import digest

CCACHE = "ccache"
# The cache's folder in the store, and the file there whose time is that of its last use.
FOLDER, USED = "ccache", "used"
_LIMIT = "8G"
# The user's variables that count here: the limit of the size, and whether to compile without it.
_USERS = ("CCACHE_MAXSIZE", "CCACHE_DISABLE")
# Links in linked trees that lead in circles, and folders whose headers no kernel includes.
_SKIPPED = (".git", ".unchanged", "Documentation", "samples")
_HEADERS = (".h", ".inc")


def cache_folder() -> Path:
    """Return the cache's directory, which may not exist."""
    return store_root() / FOLDER


def compilers(tree: Path, objects: Path, architecture: str = DEFAULT_ARCHITECTURE) -> list[str]:
    """Return the variables of make that run a kernel's compilers through ccache, if any.

    ccache's direct mode checks the headers that a compilation read before. It does not see a
    new header that the compiler would find earlier for the same #include. So a macro has the
    digest of the names of all headers in `tree`: the direct mode counts such options, and the
    preprocessor mode, which is right in any case, does not.
    """
    if shutil.which(CCACHE) is None:
        return []
    define = f"-DFIRSTTOUCH_HEADERS={_header_names(tree, objects, architecture)}"
    return [
        f"CC={CCACHE} {cross_compile(architecture)}gcc {define}",
        f"HOSTCC={CCACHE} gcc {define}",
    ]


def cache_environment(architecture: str = DEFAULT_ARCHITECTURE) -> dict[str, str | None]:
    """Return the environment in which ccache builds a kernel; None unsets a variable.

    The user's own settings of ccache do not apply, because some let it return other bytes.
    """
    if shutil.which(CCACHE) is None:
        return {}
    cache_folder().mkdir(parents=True, exist_ok=True)
    used = cache_folder() / USED
    used.touch()
    note_use(used)
    return {
        **{name: None for name in os.environ if name.startswith("CCACHE_")},
        "CCACHE_MAXSIZE": _LIMIT,
        **{name: os.environ[name] for name in _USERS if name in os.environ},
        "CCACHE_DIR": str(cache_folder()),
        "CCACHE_CONFIGPATH": os.devnull,
        "CCACHE_CONFIGPATH2": os.devnull,
        "CCACHE_COMPILERCHECK":
            f"string:{toolchain_identity(architecture)}; {compiler_version(native=True)}",
    }  # fmt: skip


@functools.cache
def _header_names(tree: Path, objects: Path, architecture: str) -> str:
    """Return a digest of the names of all headers that a kernel for `architecture` may include."""
    names = []
    # Large folders are links in some linked trees and real in others.
    for folder, below, files in os.walk(tree, followlinks=True):
        place = os.path.relpath(folder, tree)
        needed = load_architecture(architecture).folders if place == "arch" else below
        below[:] = [name for name in needed if name in below and name not in _SKIPPED]
        if place == objects.name:
            below.clear()
        else:
            names += [f"{place}/{name}" for name in files if name.endswith(_HEADERS)]
    return digest(sorted(names))[:16]
