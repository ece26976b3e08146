# SPDX-License-Identifier: GPL-2.0
"""Locks between processes of one host: flock(2), which a process that dies releases."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from firsttouch.errors import HostError

_UNSUPPORTED = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP)


class NoLocksError(HostError):
    """The file system has no file locks."""


@contextmanager
def locked(path: Path, wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold the lock file `path` while the context lasts.

    If another process holds it, call `wait` once and wait until it is free.
    """
    descriptor = _take(path, fcntl.LOCK_NB)
    if descriptor is None:
        wait()
        descriptor = _take(path)
    assert descriptor is not None
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


@contextmanager
def locked_if_free(path: Path) -> Iterator[bool]:
    """Hold the lock file `path` while the context lasts, unless another process holds it.

    Yields whether this process holds it.
    """
    descriptor = _take(path, fcntl.LOCK_NB)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            path.unlink(missing_ok=True)
            os.close(descriptor)


@contextmanager
def unless_used(path: Path) -> Iterator[bool]:
    """Keep processes from using the file `path` while the context lasts, unless one uses it.

    Yields whether none does; a missing file is used by none.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        yield True
        return
    try:
        yield _flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, path)
    finally:
        os.close(descriptor)


# The descriptors of what this process uses, by device and inode.
_used: dict[tuple[int, int], int] = {}


def use(path: Path) -> None:
    """Share the lock of `path`, if it exists, until this process ends."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return
    status = os.fstat(descriptor)
    if (status.st_dev, status.st_ino) in _used:
        os.close(descriptor)
        return
    _flock(descriptor, fcntl.LOCK_SH, path)
    _used[status.st_dev, status.st_ino] = descriptor


def _take(path: Path, flags: int = 0) -> int | None:
    """Return a descriptor that holds `path`; None if another process does, with LOCK_NB."""
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if not _flock(descriptor, fcntl.LOCK_EX | flags, path):
                os.close(descriptor)
                return None
            # A holder removes its file: then this lock is of a file without a name.
            if path.exists() and os.path.samestat(os.fstat(descriptor), path.stat()):
                return descriptor
        except BaseException as error:
            os.close(descriptor)
            if not isinstance(error, FileNotFoundError):
                raise
        else:
            os.close(descriptor)


def _flock(descriptor: int, operation: int, path: Path) -> bool:
    """Return whether the lock was got; raise NoLocksError if the file system has none."""
    try:
        fcntl.flock(descriptor, operation)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        raise NoLocksError(
            f"{path.parent} is on a file system without locks (flock), which firsttouch needs "
            "there: name a directory on another one, by --out, or by XDG_CACHE_HOME for the store."
        ) from None
    return True
