# SPDX-License-Identifier: GPL-2.0
"""A small disk that a test can fill: mounted directly by root, in a namespace by others."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class SmallDisk:
    """A disk of some KiB at `path`; `seen` is where the test itself can look at it."""

    path: Path
    seen: Path
    _enter: tuple[str, ...] = ()

    def command(self, arguments: Sequence[str | Path]) -> list[str]:
        """Return what runs `arguments` where the disk is."""
        return [*self._enter, *map(str, arguments)]


@contextmanager
def small_disk(path: Path, size: int) -> Iterator[SmallDisk]:
    """Mount a disk of `size` bytes at the empty directory `path` for as long as the context lasts.

    Others than root mount it in a namespace of its own.
    """
    path.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)]
    if os.geteuid() == 0 and _succeeds(mount):
        try:
            yield SmallDisk(path, path)
        finally:
            subprocess.run(["umount", "--lazy", path], check=True)
        return
    if _succeeds(["unshare", "--map-root-user", "--mount", *mount]):
        with _namespace(mount) as holder:
            enter = ("nsenter", "--target", str(holder), "--user", "--mount",
                     "--preserve-credentials", "--wd=.")  # fmt: skip
            yield SmallDisk(path, Path(f"/proc/{holder}/root{path.absolute()}"), enter)
        return
    raise AssertionError("no disk can be mounted here: run as root, or allow user namespaces")


def _succeeds(command: Sequence[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@contextmanager
def _namespace(mount: Sequence[str]) -> Iterator[int]:
    """Yield the process that holds a namespace in which `mount` was run."""
    script = '"$@" && echo ready && exec cat'
    with subprocess.Popen(
        ["unshare", "--map-root-user", "--mount", "sh", "-c", script, "sh", *mount],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as holder:  # fmt: skip
        assert holder.stdin is not None and holder.stdout is not None
        assert holder.stdout.readline() == "ready\n"
        yield holder.pid
        holder.stdin.close()
