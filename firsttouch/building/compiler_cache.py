# SPDX-License-Identifier: GPL-2.0
"""Objects of kernels, compiled once: ccache, in a directory of the store.

No recipe names it: a build gives the same bytes with an empty, a filled or no
cache. docs/identical-runs.md says why.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from firsttouch.building.durations import OBJECT
from firsttouch.building.host_tools import (
    cross_compile,
    find_tool,
    processors,
    toolchain_identity,
)
from firsttouch.building.patching import LARGE_FOLDERS
from firsttouch.building.store import note_use, store_root
from firsttouch.catalog.architectures import DEFAULT_ARCHITECTURE, load_architecture
from firsttouch.errors import HostError, UserError
from firsttouch.files import digest, digest_file, write_atomically
from firsttouch.processes import output
from firsttouch.tables import Json, dump_json, json_object, parse_json

CCACHE = "ccache"
# The cache's folder in the store, and the file there whose time is that of its last use.
FOLDER, USED = "ccache", "used"
_LIMIT = "8G"
# The user's variables that count here: the limit of the size, and whether to compile without it.
_USERS = ("CCACHE_MAXSIZE", "CCACHE_DISABLE")
_HEADERS = (".h", ".inc")
_NEVER_INCLUDED = (".git", "Documentation", "samples", "tools")
# What the host programs of a kernel include of tools/.
_TOOLS = ("tools/include", "tools/arch/{arch}/include")
# What builds of a name took, and which files they read.
_NOTES = "builds-{name}.json"
# Beside the objects: runs ccache in its depend mode where that sees all that a source reads.
_DEPEND = "depend.sh"
_DEPEND_SCRIPT = """\
# The source is the last word.
for source; do :; done
case $source in *.c|*.S) grep -qsF .incbin "$source" || export CCACHE_DEPEND=1 ;; esac
exec "$@"
"""
# Beside the objects: for each compilation, what came of it.
_LOG = "ccache.log"
# Of all objects: an edited line compiles fewer.
_FEW = 0.05


def cache_folder() -> Path:
    """Return the cache's directory, which may not exist."""
    return store_root() / FOLDER


def compilers(architecture: str = DEFAULT_ARCHITECTURE, objects: Path | None = None) -> list[str]:
    """Return the variables of make that let a kernel's compilers run through ccache, if any.

    `objects` is the folder of the build, where `depend_on_lists` may have written.
    """
    if shutil.which(CCACHE) is None:
        return []
    script = objects / _DEPEND if objects else None
    through = f"sh {script} {CCACHE}" if script and script.exists() else CCACHE
    return [f"CC={through} {cross_compile(architecture)}gcc", f"HOSTCC={CCACHE} gcc"]


def lacks_most(name: str, changed: Iterable[str]) -> bool:
    """Tell whether ccache lacks most objects of the next build of `name`.

    It lacks those that read a file in `changed`; the configuration is taken for that of before.
    """
    note = _note(name)
    return note is not None and 2 * note.misses(changed) > note.objects


def depend_on_lists(tree: Path, objects: Path, architecture: str) -> None:
    """Let ccache take what a compilation reads from the compiler's own list: its depend mode.

    That saves the preprocessing of each source whose object is not there. The list does not
    have what is read by ``.incbin``: such a source is preprocessed, and if a header does that,
    all are.
    """
    arch = load_architecture(architecture).arch
    folders = (str(tree / "include"), str(tree / "arch" / arch))
    words = ["grep", "-RlsF", "--include=*.h", ".incbin", *folders]
    if subprocess.run(words, stdout=subprocess.DEVNULL, check=False).returncode == 1:
        (objects / _DEPEND).write_text(_DEPEND_SCRIPT)


def cache_environment(
    tree: Path, objects: Path, architecture: str = DEFAULT_ARCHITECTURE
) -> dict[str, str | None]:
    """Return the environment in which ccache builds a kernel; None unsets a variable.

    `objects` is the folder of `tree` in which it is built. The user's own
    settings of ccache do not apply, because some let it return other bytes.
    """
    if shutil.which(CCACHE) is None:
        return {}
    cache_folder().mkdir(parents=True, exist_ok=True)
    used = cache_folder() / USED
    used.touch()
    note_use(used)
    users = {name: None for name in os.environ if name.startswith("CCACHE_")}
    return {
        **users,
        "CCACHE_MAXSIZE": _LIMIT,
        **{name: os.environ[name] for name in _USERS if name in os.environ},
        "CCACHE_DIR": str(cache_folder()),
        "CCACHE_CONFIGPATH": os.devnull,
        "CCACHE_CONFIGPATH2": os.devnull,
        "CCACHE_COMPILERCHECK": (
            f"string:{_tools_digest(architecture)} {_ambiguous(tree, objects.name, architecture)}"
        ),
        "CCACHE_STATSLOG": str(objects / _LOG),
    }


def count_misses(objects: Path) -> int | None:
    """Return how many objects of a build were not in the cache; None if it used no cache."""
    return _outcomes(objects)["cache_miss"] if (objects / _LOG).exists() else None


def note_build(name: str, objects: Path, seconds: float) -> None:
    """Note what a build in `objects` took, so that `build_estimate` knows the next of its `name`.

    A store that cannot be written is not an error here.
    """
    if not (objects / _LOG).exists():
        return
    outcomes = _outcomes(objects)
    misses, preprocessed = outcomes["cache_miss"], outcomes["preprocessed_cache_hit"]
    number = misses + preprocessed + outcomes["direct_cache_hit"]
    place = cache_folder() / _NOTES.format(name=name)
    with contextlib.suppress(OSError):
        note = dict(json_object(place.read_text()) or {}) if place.exists() else {}
        if 2 * misses > number or not note:
            note = {**note, "objects": number, "includes": _count_includes(objects)}
        if 2 * misses > number:
            note["compiled"] = round(seconds, 1)
        # Of other builds those count that compiled almost nothing.
        elif misses <= _FEW * number:
            note["preprocessed" if 2 * preprocessed > number else "found"] = round(seconds, 1)
        write_atomically(place, dump_json(note))


def build_estimate(name: str, changed: Iterable[str], *, options: bool) -> float | None:
    """Return about how many seconds the next build of `name` takes; None if none was noted.

    `changed` are files of the tree that changed since, `options` tells whether
    the configuration did: then each source is preprocessed before its object is found.
    """
    note = _note(name)
    if note is None:
        return None
    rest = note.preprocessed if options else note.cached
    return rest + note.misses(changed) * note.compiled / max(note.objects, 1)


@dataclass(frozen=True)
class _Note:
    """What builds of a name took, in seconds by what came of most of their objects."""

    objects: int
    includes: Mapping[str, float]
    compiled: float
    preprocessed: float
    cached: float

    def misses(self, changed: Iterable[str]) -> float:
        """Return about how many objects read a file that is changed."""
        return min(self.objects, sum(self.includes.get(file, 1) for file in changed))


def _note(name: str) -> _Note | None:
    """Return what was noted of builds of a name; None if nothing was."""
    place = cache_folder() / _NOTES.format(name=name)
    try:
        note = parse_json(place.read_text(), place)
        objects = note.take("objects", int)
        compiled = note.take("compiled", float, objects * OBJECT / processors())
        return _Note(
            objects,
            note.table("includes").numbers(),
            compiled,
            note.take("preprocessed", float, compiled / 3),
            note.take("found", float, compiled / 10),
        )
    except (OSError, UserError):
        return None


def _outcomes(objects: Path) -> Counter[str]:
    """Return how often each came of a compilation, by ccache's names."""
    return Counter((objects / _LOG).read_text(errors="replace").splitlines())


@functools.cache
def _tools_digest(architecture: str) -> str:
    """Return the digest of the programs that compile: ccache by itself looks at gcc alone."""
    tools = {}
    for gcc in dict.fromkeys((f"{cross_compile(architecture)}gcc", "gcc")):
        for part in (gcc, "cc1", "as"):
            path = gcc if part == gcc else output([gcc, f"-print-prog-name={part}"]).strip()
            try:
                tools[f"{gcc} {part}"] = digest_file(Path(find_tool(path)))
            except HostError:
                tools[f"{gcc} {part}"] = path
    return digest([tools, toolchain_identity(architecture)])


@functools.cache
def _ambiguous(tree: Path, objects: str, architecture: str) -> str:
    """Return the digest of the headers in `tree` that share their name in an #include.

    ccache checks the headers that a compilation read before. It does not see a
    new header that the compiler would find earlier for the same #include. Such
    a header has the name of another one, and so changes this digest.
    """
    wanted = load_architecture(architecture)
    headers: defaultdict[str, list[str]] = defaultdict(list)
    # os.walk follows no link: these folders are links in some trees, and count in all.
    linked = (name for name in LARGE_FOLDERS if (tree / name).is_symlink())
    for top in ("", *(name.format(arch=wanted.arch) for name in _TOOLS), *linked):
        for folder, below, files in os.walk(tree / top):
            if folder == str(tree):
                below[:] = [name for name in below if name not in (objects, *_NEVER_INCLUDED)]
            elif folder == str(tree / "arch"):
                below[:] = [name for name in below if name in wanted.folders]
            place = os.path.relpath(folder, tree)
            # In an #include stands what follows include/; of another header, its file's name.
            _, root, prefix = f"/{place}/".rpartition("/include/")
            prefix = prefix.removeprefix("uapi/") if root else ""
            for name in files:
                if name.endswith(_HEADERS):
                    headers[prefix + name].append(place)
    return digest({name: sorted(at) for name, at in headers.items() if len(at) > 1})


def _count_includes(objects: Path) -> dict[str, Json]:
    """Return for how many objects of a build each file of the tree was read."""
    counts: Counter[str] = Counter()
    for command in objects.rglob(".*.o.cmd"):
        text = command.read_text(errors="replace")
        counts.update(set(re.findall(r"(?<= )\.\./(\S+\.[chS])(?=[\s)])", text)))
    return dict(counts)
