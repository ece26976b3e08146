# SPDX-License-Identifier: GPL-2.0
"""Claims: locks made of hard links, which also work on a share of several hosts.

A claim is a file that its holder touches while it lives. A claim of this host
is abandoned if its process has ended. A claim of another host is abandoned if
nobody touched it for the time of a lease. File locks are not used, because a
share may not support them.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import os
import signal
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from firsttouch.errors import HostError
from firsttouch.files import link_was_made
from firsttouch.tables import json_object

# Seconds. A holder touches its claim three times in a lease.
LEASE = 60.0
_POLL = 0.2


class NoLinksError(HostError):
    """The file system of a claim has no hard links, such as FAT."""


@contextmanager
def claimed(
    path: Path, wait: Callable[[], None] = lambda: None, lease: float = LEASE
) -> Iterator[None]:
    """Hold the claim `path` while the context lasts.

    If another process holds it, call `wait` once and wait until it is free.
    """
    with _candidate(path) as candidate:
        if not _take_free_or_abandoned(path, candidate, lease):
            wait()
            while not _take_free_or_abandoned(path, candidate, lease):
                time.sleep(_POLL)
        with _renewed(candidate, lease):
            yield


@contextmanager
def claimed_if_free(path: Path, lease: float = LEASE) -> Iterator[bool]:
    """Hold the claim `path` while the context lasts, unless another process holds it.

    Yields whether this process holds it.
    """
    with _candidate(path) as candidate:
        if _take_free_or_abandoned(path, candidate, lease):
            with _renewed(candidate, lease):
                yield True
        else:
            yield False


@contextmanager
def _candidate(path: Path) -> Iterator[Path]:
    """Yield a new file that becomes the claim `path` by a link; remove both at the end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    candidate = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        candidate.touch()
        # `store prune` must get a claim on a full disk too. An empty claim names
        # no process, so only the lease tells whether its holder lives.
        with contextlib.suppress(OSError):
            candidate.write_text(json.dumps(_holder()))
        yield candidate
    finally:
        with contextlib.suppress(OSError):
            while path.samefile(candidate) and not _remove(path, candidate.stat(), LEASE):
                time.sleep(_POLL)
        candidate.unlink(missing_ok=True)


def clock(directory: Path) -> float:
    """Return the time on the clock of a directory's file system, in seconds since the epoch."""
    probe = directory / f".{uuid.uuid4().hex}"
    try:
        probe.touch()
        return probe.stat().st_mtime
    finally:
        probe.unlink(missing_ok=True)


def is_claimed(path: Path, lease: float = LEASE) -> bool:
    """Tell whether a living process holds the claim `path`."""
    try:
        return not _is_abandoned(path, lease)
    except FileNotFoundError:
        return False


def _take_free_or_abandoned(path: Path, candidate: Path, lease: float) -> bool:
    """Make `candidate` the claim `path` if that is free or abandoned; tell whether it is now."""
    return _take(path, candidate) or (_remove_abandoned(path, lease) and _take(path, candidate))


def _take(path: Path, candidate: Path) -> bool:
    # The lease begins now, not when the wait began.
    os.utime(candidate)
    try:
        os.link(candidate, path)
    except FileExistsError:
        return link_was_made(candidate)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS):
            raise
        raise NoLinksError(
            f"{path.parent} is on a file system without hard links, which firsttouch needs there: "
            "name a directory on another one, by --out, or by XDG_CACHE_HOME for the store."
        ) from None
    return True


def _remove_abandoned(path: Path, lease: float) -> bool:
    """Remove the claim `path` if it is abandoned; return whether it may be taken now."""
    try:
        holder = path.stat()
        if not _is_abandoned(path, lease):
            return False
    except FileNotFoundError:
        return True
    return _remove(path, holder, lease)


def _remove(path: Path, claim: os.stat_result, lease: float) -> bool:
    """Remove `path` if it is still the file `claim`, untouched; return whether it is gone.

    A process that removes a claim, the holder too, first makes a link whose
    name has the claim's inode. Only one process can make this link, so only
    one removes the claim, and none removes a claim that was made since.
    """
    dead = path.with_name(f".{path.name}.dead-{claim.st_ino}")
    try:
        os.link(path, dead)
    except FileNotFoundError:
        return True
    except FileExistsError:
        # Another process is removing it. If that process dies, its link expires too.
        with contextlib.suppress(OSError):
            if clock(path.parent) - dead.stat().st_ctime > lease:
                dead.unlink()
        return False
    try:
        now = dead.stat()
        if (now.st_ino, now.st_mtime_ns) == (claim.st_ino, claim.st_mtime_ns):
            path.unlink(missing_ok=True)
            return True
        return False
    finally:
        dead.unlink(missing_ok=True)


def _is_abandoned(path: Path, lease: float) -> bool:
    """Tell whether the holder of the claim `path` is gone; FileNotFoundError if the claim is."""
    touched = path.stat().st_mtime
    holder = json_object(path.read_text(errors="replace")) or {}
    if holder.get("host") == _host():
        # A process that was stopped, or slept with its host, touches nothing but lives.
        pid = holder.get("pid")
        return not isinstance(pid, int) or holder.get("started") != _started(pid)
    # By the clock of the file system, because the clocks of hosts differ.
    return clock(path.parent) - touched > lease


def _holder() -> dict[str, str | int | None]:
    pid = os.getpid()
    return {"host": _host(), "name": socket.gethostname(), "pid": pid, "started": _started(pid)}


@functools.cache
def _host() -> str:
    """Return a string that is unique to this boot of this host and this PID namespace."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    identity = boot.read_text().strip() if boot.exists() else socket.gethostname()
    # The PIDs of a container begin at 1 again.
    space = Path("/proc/self/ns/pid")
    return f"{identity} {space.readlink()}" if space.is_symlink() else identity


def _started(pid: int) -> str | None:
    """Return the start time of a process of this host; it shows whether a PID was reused."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None


@contextmanager
def _renewed(candidate: Path, lease: float) -> Iterator[None]:
    """Touch the file behind a claim while the context lasts."""
    ended = threading.Event()

    def touch() -> None:
        while not ended.wait(lease / 3):
            with contextlib.suppress(OSError):
                os.utime(candidate)

    thread = threading.Thread(target=touch, daemon=True)
    # The thread takes no signal: `trace` blocks those of the process and waits for them, but
    # one that comes while it does not wait goes to any thread that has not blocked it.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        thread.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    try:
        yield
    finally:
        ended.set()
        thread.join()
