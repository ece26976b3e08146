# SPDX-License-Identifier: GPL-2.0
"""What is in a guest's initial RAM disk, which may consist of several archives."""

from __future__ import annotations

import stat

from firsttouch.building.cpio import DIRECTORY, TRAILER, archive, padded, record
from firsttouch.vm.guest import Guest


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


def console_archive() -> bytes:
    """Return an archive with /dev/console: init's standard output before it mounts /dev."""
    members = record(1, "dev", DIRECTORY, b"") + record(
        2, "dev/console", stat.S_IFCHR | 0o600, b"", device=(5, 1)
    )
    return padded(members + record(0, TRAILER, 0, b""), 512)
