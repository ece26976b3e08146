# SPDX-License-Identifier: GPL-2.0
"""ccache for kernels, in a directory of the store.

No recipe names it: a build gives the same bytes with an empty, a filled or no
cache. docs/explanation/identical-runs.md says why.
"""

from __future__ import annotations

import functools
import os
import shutil
from pathlib import Path

from firsttouch.building.host_tools import compiler_version, cross_compile, toolchain_identity
from firsttouch.building.store import CCACHE, note_use, store_root
from firsttouch.catalog.architectures import DEFAULT_ARCHITECTURE, load_architecture
from firsttouch.files import digest

# The user's variables that count here: the limit of the size, and whether to compile without it.
_USERS = {"CCACHE_MAXSIZE": "8G", "CCACHE_DISABLE": None}
# Links in linked trees that lead in circles, and folders whose headers no kernel includes.
_SKIPPED = (".git", ".unchanged", "Documentation", "samples")


def compilers(tree: Path, architecture: str = DEFAULT_ARCHITECTURE) -> list[str]:
    """Return the variables of make that run a kernel's compilers through ccache, if any.

    ccache's direct mode checks the headers that a compilation read before. It does not see a
    new header that the compiler would find earlier for the same #include. So a macro has the
    digest of the names of all headers in `tree`: the direct mode counts such options, and the
    preprocessor mode, which is right in any case, does not.
    """
    if shutil.which(CCACHE) is None:
        return []
    define = f"-DFIRSTTOUCH_HEADERS={_header_names(tree, architecture)}"
    return [f"{variable}={CCACHE} {compiler} {define}" for variable, compiler in (
        ("CC", f"{cross_compile(architecture)}gcc"), ("HOSTCC", "gcc"),
    )]  # fmt: skip


def cache_environment(architecture: str = DEFAULT_ARCHITECTURE) -> dict[str, str | None]:
    """Return the environment in which ccache builds a kernel; None unsets a variable.

    The user's own settings of ccache do not apply, because some let it return other bytes.
    """
    if shutil.which(CCACHE) is None:
        return {}
    folder = store_root() / CCACHE
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "used").touch()
    note_use(folder / "used")
    tools = f"{toolchain_identity(architecture)}; {compiler_version(native=True)}"
    return {
        **{name: None for name in os.environ if name.startswith("CCACHE_")},
        **{name: os.environ.get(name, default) for name, default in _USERS.items()},
        "CCACHE_DIR": str(folder),
        "CCACHE_CONFIGPATH": os.devnull,
        "CCACHE_CONFIGPATH2": os.devnull,
        "CCACHE_COMPILERCHECK": f"string:{tools}",
    }


@functools.cache
def _header_names(tree: Path, architecture: str) -> str:
    names = []
    # Large folders are links in some linked trees and real in others.
    for folder, below, files in os.walk(tree, followlinks=True):
        place = os.path.relpath(folder, tree)
        needed = load_architecture(architecture).folders if place == "arch" else below
        below[:] = [name for name in needed if name in below and name not in _SKIPPED]
        names += [f"{place}/{name}" for name in files if name.endswith((".h", ".inc"))]
    return digest(sorted(names))[:16]
