# SPDX-License-Identifier: GPL-2.0
"""Initial RAM disks: cpio archives in the "newc" format, with reproducible bytes.

Format: Documentation/driver-api/early-userspace/buffer-format.rst of the
kernel. An initial RAM disk may consist of several archives.
"""

from __future__ import annotations

from collections.abc import Mapping

from firsttouch.vm.guest import Guest

_TRAILER = "TRAILER!!!"
_DIRECTORY = 0o040755
_FILE = 0o100755
_CONSOLE = 0o020600


def guest_archive(guest: Guest) -> bytes:
    """Return a guest's initial RAM disk: init, the guest's files, and its commands."""
    members = {"/init": guest.init, **guest.files}
    # guest/init.c reads the files in /cell.
    orders = {"/cell/commands": "".join(f"{command}\n" for command in guest.commands).encode()}
    if guest.disk:
        orders["/cell/mount-disk"] = b""
    if guest.measures:
        orders["/cell/settle"] = b""
    return (
        # The kernel looks for ACPI tables in the first archive only.
        guest.tables
        + console_archive()
        + archive({name: path.read_bytes() for name, path in members.items()})
        + archive(orders)
    )


def archive(files: Mapping[str, bytes]) -> bytes:
    """Return an archive of `files`, by absolute name, and of their directories."""
    folders: set[str] = set()
    for name in files:
        parts = name.strip("/").split("/")[:-1]
        folders.update("/".join(parts[: end + 1]) for end in range(len(parts)))
    records = [
        _record(number, name, _DIRECTORY, b"") for number, name in enumerate(sorted(folders), 1)
    ]
    records += [
        _record(len(folders) + number, name.strip("/"), _FILE, files[name])
        for number, name in enumerate(sorted(files), 1)
    ]
    return _padded(b"".join(records) + _record(0, _TRAILER, 0, b""), 512)


def console_archive() -> bytes:
    """Return an archive with /dev/console: init's standard output before it mounts /dev."""
    return _padded(
        _record(1, "dev", _DIRECTORY, b"")
        + _record(2, "dev/console", _CONSOLE, b"", device=(5, 1))
        + _record(0, _TRAILER, 0, b""),
        512,
    )


def _record(
    number: int, name: str, mode: int, data: bytes, device: tuple[int, int] = (0, 0)
) -> bytes:
    """Return one member; owner, group and time are 0, so that the bytes are reproducible."""
    links = 2 if mode == _DIRECTORY else 1
    fields = (
        number, mode, 0, 0, links, 0, len(data), 0, 0, *device, len(name) + 1, 0,
    )  # fmt: skip
    header = b"070701" + b"".join(b"%08X" % field for field in fields)
    return _padded(header + name.encode() + b"\0", 4) + _padded(data, 4)


def _padded(data: bytes, unit: int) -> bytes:
    return data + b"\0" * (-len(data) % unit)
