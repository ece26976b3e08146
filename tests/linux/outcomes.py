# SPDX-License-Identifier: GPL-2.0
"""What guests did, kept under the hash of all that decides it, so that a run can go on.

Only `make regress` keeps outcomes: hours of guests, of which an interrupted
run loses none that had ended. The tests look at a kept outcome as they look
at a new one. `make test` boots every guest each time.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from firsttouch.build.store import write_atomically
from firsttouch.vm.guest import Done, Guest, recipe_key


@dataclass(frozen=True)
class Outcome:
    """How the commands of a guest ended, and its kernel's log."""

    commands: tuple[Done, ...]
    log: tuple[str, ...]


@dataclass(frozen=True)
class Outcomes:
    """Runs guests; goes on from `kept`, if there is such a folder.

    `kept` gets a file with what each guest printed, too: KTAP, for people.
    """

    scratch: Path
    kept: Path | None

    def of(self, guest: Guest, name: str, *, silence: float = 600, splats: bool = False) -> Outcome:
        """Return what `guest` did, now or when it was run before; raises as Guest.execute."""
        if self.kept is None:
            return self._run(guest, silence, splats)
        key = recipe_key({**guest.identity(), "splats": splats})
        place = self.kept / "outcomes" / f"{key}.json"
        if place.exists():
            return _read(place)
        outcome = self._run(guest, silence, splats)
        write_atomically(place, json.dumps(asdict(outcome)))
        printed = [line for done in outcome.commands for line in done.lines] or outcome.log
        ktap = self.kept / "ktap" / f"{re.sub(r'[^A-Za-z0-9_.-]+', '_', name)}.ktap"
        write_atomically(ktap, "".join(f"{line}\n" for line in printed))
        return outcome

    def _run(self, guest: Guest, silence: float, splats: bool) -> Outcome:
        log = self.scratch / "log"
        commands = guest.execute(log, silence=silence, splats=splats)
        return Outcome(tuple(commands), tuple(log.read_text(errors="replace").splitlines()))


def _read(place: Path) -> Outcome:
    data = json.loads(place.read_text())
    commands = tuple(Done(done["status"], tuple(done["lines"])) for done in data["commands"])
    return Outcome(commands, tuple(data["log"]))
