# SPDX-License-Identifier: GPL-2.0
"""Outcomes of guests in the store, by all inputs, so that `make regress` can continue.

Only tests marked `regress` use stored outcomes: their guests take hours, and
neither an interrupt nor a new clone loses a finished one. A test checks a
stored outcome like a new one. `make test` boots every guest each time.
"""

from dataclasses import asdict, dataclass
from pathlib import Path

from firsttouch.building.store import keep_outcome, stored_outcome
from firsttouch.files import digest
from firsttouch.tables import Fields
from firsttouch.vm.guest import Guest
from firsttouch.vm.qemu import guest_key
from firsttouch.vm.supervision import Done, run_guest


@dataclass(frozen=True)
class Outcome:
    """How the commands of a guest ended, and its kernel's log."""

    commands: tuple[Done, ...]
    log: tuple[str, ...]


@dataclass(frozen=True)
class Outcomes:
    """Runs guests; `kept`: uses stored outcomes, and stores new ones."""

    scratch: Path
    lasting: bool

    def of(self, guest: Guest, name: str, *, silence: float = 600, splats: bool = False) -> Outcome:
        """Return the outcome of `guest`, stored or new; raises as `run_guest`."""
        if not self.lasting:
            return self._run(guest, silence, splats)
        # Part of the key: a guest with a splat has an outcome only if splats are expected.
        key = digest({"kernel's tests": guest_key(guest), "splats": splats})
        if before := stored_outcome(key):
            return _read(before)
        outcome = self._run(guest, silence, splats)
        keep_outcome(key, asdict(outcome))
        return outcome

    def _run(self, guest: Guest, silence: float, splats: bool) -> Outcome:
        log = self.scratch / "log"
        ended = run_guest(guest, log, silence=silence, splats=splats)
        return Outcome(ended.commands, tuple(log.read_text(errors="replace").splitlines()))


def _read(table: Fields) -> Outcome:
    commands = tuple(
        Done(done.take("status", int), done.strings("lines")) for done in table.tables("commands")
    )
    return Outcome(commands, table.strings("log"))
