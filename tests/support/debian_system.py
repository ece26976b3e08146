# SPDX-License-Identifier: GPL-2.0
"""Debian 13 for arm64 on a disk that EFI boots, and runs of it in QEMU.

The disk is made without root, but for one thing: the host must run arm64
programs (binfmt_misc), because maintainer scripts are arm64 programs.
"""

from __future__ import annotations

import platform
import shlex
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from firsttouch.building.apt import mirror_archive
from firsttouch.building.host_tools import QEMU, qemu_digest
from firsttouch.building.outcomes import keep_outcome, stored_outcome
from firsttouch.building.store import Entry
from firsttouch.errors import GuestError, HostError
from firsttouch.files import digest, digest_file, write_atomically
from firsttouch.processes import output
from firsttouch.progress import Reporter
from firsttouch.tables import Json
from firsttouch.vm.qemu import option_value
from firsttouch.vm.supervision import log_end, run_qemu

_SUITE = "trixie"
_PACKAGES = (
    "systemd-sysv", "udev", "kmod", "linux-image-cloud-arm64", "grub-efi-arm64",
    # What a survey needs: it builds ftbench.
    "gcc", "make", "libc6-dev", "procps", "python3", "python3-capstone", "python3-jinja2",
    "python3-pyelftools", "python3-rich", "python3-shtab",
)  # fmt: skip
_FIRMWARE = Path("/usr/share/qemu-efi-aarch64/QEMU_EFI.fd")
_BINFMT = Path("/proc/sys/fs/binfmt_misc")
_INTERPRETER = Path("/usr/lib/binfmt.d/qemu-aarch64.conf")
_MIB = 1 << 20
_EFI_SIZE, _ROOT_SIZE = 64 * _MIB, 4096 * _MIB
# A unit of sfdisk: a sector of 512 bytes. The first partition begins at 1 MiB.
_PARTITIONS = f"""\
label: gpt
start=2048, size={_EFI_SIZE // 512}, type=uefi
size={_ROOT_SIZE // 512}, type=linux
"""
# What grub-install writes for Debian's own image of GRUB.
_EFI_GRUB = """\
search --no-floppy --label --set=root firsttouch
set prefix=($root)/boot/grub
configfile $prefix/grub.cfg
"""
# Until a package of a kernel is installed, whose hook writes another by update-grub.
_FIRST_MENU = """\
linux /boot/@KERNEL@ root=LABEL=firsttouch console=ttyAMA0
initrd /boot/@INITRD@
boot
"""
# Runs where `files`, and the images `efi` and `ext4`, are; $1 is the archive.
_SCRIPT = """\
rm -rf root
mkdir root
tar -xf "$1" -C root
mkdir -p root/boot/grub root/etc/systemd/system/multi-user.target.wants
cd root/boot
kernel=$(echo vmlinuz-*) initrd=$(echo initrd.img-*)
sed "s,@KERNEL@,$kernel,; s,@INITRD@,$initrd," ../../files/menu >grub/grub.cfg
cd ../..
cp -r --no-preserve=ownership files/etc root
ln -sf /etc/systemd/system/steps.service root/etc/systemd/system/multi-user.target.wants
mformat -i efi -F ::
mmd -i efi ::EFI ::EFI/BOOT ::EFI/debian
mcopy -i efi root/usr/lib/grub/arm64-efi/monolithic/grubaa64.efi ::EFI/BOOT/BOOTAA64.EFI
mcopy -i efi files/grub.cfg ::EFI/debian/grub.cfg
PATH=$PATH:/usr/sbin:/sbin
mke2fs -q -F -t ext4 -L firsttouch -d root ext4
"""
_FILES = {
    "etc/fstab": "LABEL=firsttouch / ext4 errors=remount-ro 0 1\n",
    "etc/hostname": "firsttouch\n",
    "etc/default/grub.d/firsttouch.cfg": 'GRUB_TIMEOUT=0\nGRUB_CMDLINE_LINUX="console=ttyAMA0"\n',
    "etc/systemd/system/steps.service": """\
[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStartPre=mount -o ro /dev/disk/by-label/steps /mnt
ExecStart=sh -c 'exec sh /mnt/run >/dev/virtio-ports/results 2>&1'
[Install]
WantedBy=multi-user.target
""",
}  # fmt: skip


@contextmanager
def arm64_programs() -> Iterator[None]:
    """Let this host run arm64 programs while the context lasts; HostError if it cannot.

    At the end, the host is as it was: what this mounts and registers is undone.
    """
    register, entry = _BINFMT / "register", _BINFMT / "qemu-aarch64"
    if platform.machine() == "aarch64":
        yield
        return
    with ExitStack() as undo:
        try:
            if not register.exists():
                output(["mount", "-t", "binfmt_misc", "binfmt_misc", _BINFMT])
                undo.callback(output, ["umount", _BINFMT])
            if not entry.exists():
                register.write_text(_INTERPRETER.read_text().strip())
                undo.callback(entry.write_text, "-1")
        except (OSError, HostError) as error:
            raise HostError(
                f"this host does not run arm64 programs ({error}): install qemu-user-static, and "
                "let root enable its entry of binfmt_misc."
            ) from None
        yield


def debian_disk(reporter: Reporter) -> Path:
    """Return the image of the disk; it is made if the store lacks it.

    Its service `steps` runs the script `run` of the disk labelled steps, which
    prints to the port `results`.
    """
    recipe: dict[str, Json] = {
        "suite": _SUITE,
        "packages": list(_PACKAGES),
        "partitions": _PARTITIONS,
        "GRUB": [_EFI_GRUB, _FIRST_MENU],
        "made by": _SCRIPT,
        "files": dict(_FILES),
    }

    def make(workplace: Path, kept_in: Path) -> None:
        archive = workplace / "root.tar"
        if not archive.exists():
            _bootstrap(workplace, reporter)
        _write_disk(archive, workplace, kept_in / "disk")

    entry = Entry("disks", recipe, "disk with Debian 13 for arm64")
    return entry.obtain(make, reporter.say) / "disk"


def _bootstrap(workplace: Path, reporter: Reporter) -> None:
    """Write the archive of a new system's files: root.tar."""
    reporter.say(f"Making Debian {_SUITE} for arm64 by mmdebstrap; this takes some minutes")
    sources, partial = workplace / "mirror.sources", workplace / "partial.tar"
    sources.write_text(mirror_archive(_SUITE).source)
    with arm64_programs():
        output(
            ["mmdebstrap", "--quiet", "--architectures=arm64", "--variant=minbase",
             f"--include={','.join(_PACKAGES)}", _SUITE, partial, sources]
        )  # fmt: skip
    partial.rename(workplace / "root.tar")


def _write_disk(archive: Path, workplace: Path, disk: Path) -> None:
    """Write the image of a disk with EFI's partition and the files of `archive`."""
    for name, text in {**_FILES, "menu": _FIRST_MENU, "grub.cfg": _EFI_GRUB}.items():
        write_atomically(workplace / "files" / name, text)
    efi, root = workplace / "efi", workplace / "ext4"
    _truncate(efi, _EFI_SIZE)
    _truncate(root, _ROOT_SIZE)
    _truncate(disk, _EFI_SIZE + _ROOT_SIZE + 2 * _MIB)
    script = workplace / "script"
    script.write_text(_SCRIPT)
    # In one fakeroot, so that the files keep their owners.
    output(["fakeroot", "sh", "-eu", script, archive], cwd=workplace)
    (workplace / "partitions").write_text(_PARTITIONS)
    sfdisk = f"PATH=$PATH:/usr/sbin:/sbin; sfdisk -q {shlex.quote(str(disk))} <partitions"
    output(["sh", "-c", sfdisk], cwd=workplace)
    for image, at in ((efi, 1), (root, 1 + _EFI_SIZE // _MIB)):
        output(["dd", f"if={image}", f"of={disk}", "bs=1M", f"seek={at}", "conv=notrunc,sparse"])


def _truncate(file: Path, size: int) -> None:
    """Make `file` an empty one of `size` bytes."""
    with file.open("wb") as opened:
        opened.truncate(size)


@dataclass(frozen=True)
class DebianSystem:
    """Debian 13 on the `disk` of `debian_disk`, whose changes are dropped at the end.

    It has one CPU: with several in threads, QEMU reports the first touch of an
    atomic as a write.
    """

    disk: Path

    def run(self, steps: Path, scratch: Path, *, silence: float) -> str:
        """Boot, run the script `run` in `steps`, and return what it printed.

        The system sees `steps` on /mnt. A run that was kept under the digest of
        all that QEMU gets is used again. Raises GuestError, with the end of the
        console, if the system is silent for `silence` seconds.
        """
        files = {
            str(file.relative_to(steps)): digest_file(file)
            for file in sorted(steps.rglob("*"))
            if file.is_file()
        }
        key = digest(
            {
                "steps": files,
                "disk": digest_file(self.disk),
                "firmware": digest_file(_FIRMWARE),
                "QEMU": [qemu_digest(), *_arguments({})],
            }
        )
        if (before := stored_outcome(key)) is None:
            printed = self._run(steps, scratch, silence)
            keep_outcome(key, {"printed": printed})
            return printed
        return before.take("printed", str)

    def _run(self, steps: Path, scratch: Path, silence: float) -> str:
        paths = {name: scratch / name for name in ("disk of steps", "console", "results")}
        for path in paths.values():
            path.write_bytes(b"")
        size = sum(file.stat().st_size for file in steps.rglob("*") if file.is_file())
        _truncate(paths["disk of steps"], 2 * size + 16 * _MIB)
        output(["mke2fs", "-q", "-t", "ext4", "-L", "steps", "-d", steps, paths["disk of steps"]])
        paths |= {"disk": self.disk, "firmware": _FIRMWARE}
        written = [paths["console"], paths["results"]]
        if complaint := run_qemu(
            [QEMU, *_arguments(paths)], scratch / "QEMU's messages", written, silence
        ):
            raise GuestError(f"the system {complaint}", log_end(paths["console"]))
        return paths["results"].read_text(errors="replace")


def _arguments(paths: Mapping[str, Path]) -> list[str]:
    """Return QEMU's arguments; a path that is not given stands as its name.

    -bios and -serial take a path as it is.
    """

    def path(name: str) -> str:
        return str(paths.get(name, name))

    def value(name: str) -> str:
        return option_value(path(name))

    return [
        "-nodefaults", "-no-user-config", "-display", "none", "-monitor", "none",
        "-M", "virt,gic-version=3", "-cpu", "neoverse-n1", "-smp", "1", "-m", "2G",
        "-bios", path("firmware"),
        "-serial", f"file:{path('console')}",
        "-drive", f"if=none,id=disk,format=raw,snapshot=on,file={value('disk')}",
        "-device", "virtio-blk-pci,drive=disk",
        "-drive", f"if=none,id=steps,format=raw,readonly=on,file={value('disk of steps')}",
        "-device", "virtio-blk-pci,drive=steps",
        "-device", "virtio-serial-pci",
        "-chardev", f"file,id=results,path={value('results')}",
        "-device", "virtserialport,chardev=results,name=results",
    ]  # fmt: skip
