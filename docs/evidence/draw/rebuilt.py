# SPDX-License-Identifier: GPL-2.0
"""Programs that are built again from Debian's source, for this host, with debug information."""

from __future__ import annotations

import shutil
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from firsttouch import processes
from firsttouch.building.apt import Listed, apt_get, listed_files, mirror_archive, private_root
from firsttouch.building.host_tools import toolchain_identity
from firsttouch.building.store import Entry, store_root
from firsttouch.errors import BuildError, HostError, UserError
from firsttouch.files import digest_file, write_atomically
from firsttouch.progress import Reporter
from firsttouch.tables import dump_json, parse_json, read_toml

# Debian's own flag for optimization.
_FLAGS = "-g -O2"


@dataclass(frozen=True)
class Rebuilt:
    """A program to build: `build` is a shell's line in the tree of `source`.

    `product` is the program's path in that tree, `path` the one that Debian's
    program has in a root directory. `name` is that of the script that runs it.
    """

    name: str
    suite: str
    source: str
    build: str
    product: str
    path: str

    def obtain(self, reporter: Reporter) -> Path:
        """Return the program.

        Raises HostError if its source cannot be fetched, BuildError with the
        last lines of the build if that fails.
        """
        files = self._stored() or self._find()

        def make(workplace: Path, into: Path) -> None:
            tree = self._fetch(files, workplace)
            reporter.say(f"Building {self.source} from Debian's source")
            environment = {"CFLAGS": _FLAGS, "LC_ALL": "C"}
            try:
                processes.output(["sh", "-ec", self.build], cwd=tree, env=environment)
            except HostError as error:
                raise BuildError(f"{self.source} failed to build.", error.detail) from None
            shutil.copy(tree / self.product, into / self.name)

        recipe = {
            "source": [file.sha256 for file in files],
            "build": self.build,
            "product": self.product,
            "flags": _FLAGS,
            "tools": toolchain_identity(native=True),
        }
        entry = Entry("programs", recipe, f"{self.name} with debug information")
        return entry.obtain(make, reporter.say) / self.name

    def _stored(self) -> list[Listed] | None:
        """Return the source's files that were found last; None if none were."""
        try:
            table = parse_json(self._pointer().read_text(), self._pointer())
            return [
                Listed(file.take("file", str), file.take("size", int), file.take("sha256", str))
                for file in table.tables("files")
            ]
        except (OSError, UserError):
            return None

    def _find(self) -> list[Listed]:
        """Find the newest source in the archive; HostError if there is none."""
        arguments = [*self._apt(), "--print-uris", "source", self.source]
        listed = apt_get(["-oAcquire::ForceHash=SHA256", *arguments])
        files = [f for f in listed_files(listed.stdout) if not f.file.endswith(".asc")]
        if listed.returncode or not files:
            raise HostError(
                f"{self.suite} of this host's mirror has no source of {self.source}: check the "
                "network and /etc/apt.",
                listed.stderr.strip().splitlines()[-3:],
            )
        write_atomically(self._pointer(), dump_json({"files": [asdict(f) for f in files]}))
        return files

    def _fetch(self, files: list[Listed], workplace: Path) -> Path:
        """Download and unpack the source below `workplace`; return its tree."""
        folder = workplace / "source"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        processes.output(
            ["apt-get", *self._apt(), "--download-only", "source", self.source], cwd=folder
        )
        for file in files:
            if not (folder / file.file).exists() or digest_file(folder / file.file) != file.sha256:
                self._pointer().unlink(missing_ok=True)
                raise HostError(
                    f"{self.suite} no longer has {file.file}: run the same command again, which "
                    "takes the version that is there now."
                )
        (description,) = folder.glob("*.dsc")
        tree = folder / "tree"
        processes.output(["dpkg-source", "--no-check", "-x", description, tree])
        return tree

    def _apt(self) -> list[str]:
        archive = replace(mirror_archive(self.suite), types="deb-src")
        # Of its own, so that the host's packages do not choose the version.
        return private_root([archive], architecture="amd64")

    def _pointer(self) -> Path:
        return store_root() / "packages" / f"source-{self.suite}-{self.source}.json"


def load_rebuilt(file: Path) -> list[Rebuilt]:
    """Return the programs that a TOML file lists; UserError if it is wrong."""
    table = read_toml(file)
    suite = table.take("suite", str)
    programs = []
    for entry in table.tables("program"):
        name, source, build, product, path = (
            entry.take(key, str) for key in ("name", "source", "build", "product", "path")
        )
        entry.done()
        programs.append(Rebuilt(name, suite, source, build, product, path))
    table.done()
    return programs
