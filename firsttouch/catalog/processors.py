# SPDX-License-Identifier: GPL-2.0
"""Names of CPUs, from /proc/cpuinfo, which has only the numbers of arm64's.

Source of the numbers: the kernel's arch/arm64/include/asm/cputype.h. The names
are the vendors'. A CPU that is not listed is shown by its numbers.
"""

from __future__ import annotations

import re

_IMPLEMENTERS = {
    0x41: "Arm",
    0x43: "Cavium",
    0x46: "Fujitsu",
    0x48: "HiSilicon",
    0x4E: "NVIDIA",
    0x50: "APM",
    0x51: "Qualcomm",
    0x61: "Apple",
    0x6D: "Microsoft",
    0xC0: "Ampere",
}
_PARTS = {
    (0x41, 0xD03): "Cortex-A53",
    (0x41, 0xD05): "Cortex-A55",
    (0x41, 0xD07): "Cortex-A57",
    (0x41, 0xD08): "Cortex-A72",
    (0x41, 0xD09): "Cortex-A73",
    (0x41, 0xD0A): "Cortex-A75",
    (0x41, 0xD0B): "Cortex-A76",
    (0x41, 0xD0C): "Neoverse N1",
    (0x41, 0xD0D): "Cortex-A77",
    (0x41, 0xD40): "Neoverse V1",
    (0x41, 0xD41): "Cortex-A78",
    (0x41, 0xD46): "Cortex-A510",
    (0x41, 0xD47): "Cortex-A710",
    (0x41, 0xD49): "Neoverse N2",
    (0x41, 0xD4F): "Neoverse V2",
    (0x41, 0xD80): "Cortex-A520",
    (0x41, 0xD81): "Cortex-A720",
    (0x41, 0xD84): "Neoverse V3",
    (0x41, 0xD8E): "Neoverse N3",
    (0x43, 0x0AF): "ThunderX2",
    (0x46, 0x001): "A64FX",
    (0x48, 0xD01): "Kunpeng 920",
    (0x4E, 0x004): "Carmel",
    (0x51, 0x001): "Oryon",
    (0x61, 0x022): "M1 (efficiency core)",
    (0x61, 0x023): "M1 (performance core)",
    (0x61, 0x032): "M2 (efficiency core)",
    (0x61, 0x033): "M2 (performance core)",
    (0x6D, 0xD49): "Cobalt 100",
    (0xC0, 0xAC3): "AmpereOne",
    (0xC0, 0xAC4): "AmpereOne A",
}


def is_arm64(cpuinfo: str) -> bool:
    """Tell whether the text of /proc/cpuinfo is an arm64 kernel's."""
    return "CPU implementer" in cpuinfo


def processor_name(cpuinfo: str, cpu: int = 0) -> str:
    """Return the name of CPU `cpu` from the text of /proc/cpuinfo."""
    if not is_arm64(cpuinfo):
        name = re.search(r"^model name\s*:\s*(.*)$", cpuinfo, re.M)
        return name[1] if name else "unknown CPU"
    entries = re.split(r"\n\s*\n", cpuinfo)
    entry = next((e for e in entries if re.search(rf"^processor\s*:\s*{cpu}$", e, re.M)), cpuinfo)
    implementer = re.search(r"^CPU implementer\s*:\s*(0x[0-9a-f]+)", entry, re.M)
    part = re.search(r"^CPU part\s*:\s*(0x[0-9a-f]+)", entry, re.M)
    if not implementer or not part:
        return "unknown arm64 CPU"
    numbers = (int(implementer[1], 16), int(part[1], 16))
    vendor = _IMPLEMENTERS.get(numbers[0], f"implementer {numbers[0]:#x}")
    return f"{vendor} {_PARTS.get(numbers, f'part {numbers[1]:#x}')}"
