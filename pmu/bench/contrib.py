# SPDX-License-Identifier: GPL-2.0
"""QEMU's own cache model, contrib/plugins/cache.c, built from the installed QEMU's source.

The source is Debian's package of the same version, unpacked by dpkg-source,
so with Debian's patches.
"""

from __future__ import annotations

import shutil
from dataclasses import astuple
from pathlib import Path

from firsttouch.building.apt import Archive, host_archives, private_root, unpack
from firsttouch.building.store import Entry
from firsttouch.catalog.experiments import Packages
from firsttouch.processes import output
from firsttouch.progress import Reporter

_PACKAGE = "qemu-system-arm"
# Only for their headers.
_GLIB = Packages("bookworm", ("libglib2.0-dev",))
_FILES = ("contrib/plugins/cache.c", "include/qemu/qemu-plugin.h")


class _Sources(Archive):
    @property
    def source(self) -> str:
        return super().source.replace("Types: deb", "Types: deb-src", 1)


def build_contrib_cache(folder: Path, reporter: Reporter) -> Path:
    """Build libcache.so in `folder`; return its path.

    Raises HostError if QEMU is not of a Debian package, or the source cannot be
    fetched.
    """
    version = output(["dpkg-query", "-W", "-f", "${source:Version}", _PACKAGE])
    entry = Entry("packages", {"QEMU's cache.c": version}, f"cache.c of QEMU {version}")

    def make(workplace: Path, kept: Path) -> None:
        archives = [_Sources(*astuple(archive)) for archive in host_archives()]
        options = private_root(archives)
        source = workplace / "source"
        shutil.rmtree(source, ignore_errors=True)
        source.mkdir()
        reporter.say(f"Fetching the source of QEMU {version}.")
        output(["apt-get", *options, "source", "--only-source", f"qemu={version}"], cwd=source)
        (tree,) = (path for path in source.iterdir() if path.is_dir())
        for name in _FILES:
            shutil.copy(tree / name, kept)

    sources = entry.obtain(make, reporter.say)
    headers = unpack(_GLIB, reporter) / "usr"
    (configured,) = headers.glob("lib/*/glib-2.0/include")
    plugin = folder / "libcache.so"
    output(
        ["gcc", "-O2", "-fPIC", "-shared", f"-I{sources}", f"-I{headers / 'include/glib-2.0'}",
         f"-I{configured}", "-o", plugin, sources / "cache.c"]
    )  # fmt: skip
    return plugin
