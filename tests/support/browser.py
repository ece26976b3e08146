# SPDX-License-Identifier: GPL-2.0
"""Headless Chromium from the system's packages, driven over its debugging pipe."""

import base64
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

_FLAGS = (
    "--headless",
    "--no-sandbox",  # the tests may run as root
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
    "--remote-debugging-pipe",
)

Message = dict[str, Any]


class Browser:
    """One page of a running browser."""

    def __init__(self, commands: IO[bytes], answers: IO[bytes]) -> None:
        self._commands = commands
        self._answers = answers
        self._received = b""
        self._number = 0
        self._session: str | None = None
        self._unread: list[Message] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        self.call("Page.enable")

    def call(self, method: str, **params: Any) -> Message:
        """Return the answer to a command of the DevTools protocol."""
        self._number += 1
        message: Message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        self._commands.write(json.dumps(message).encode() + b"\0")
        self._commands.flush()
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result = answer["result"]
                assert isinstance(result, dict)
                return result
            self._unread.append(answer)

    def _read(self) -> Message:
        while b"\0" not in self._received:
            more = os.read(self._answers.fileno(), 1 << 20)
            assert more, "the browser has ended"
            self._received += more
        text, _, self._received = self._received.partition(b"\0")
        message: Message = json.loads(text)
        return message

    def open(self, file: Path, width: int, *, dark: bool = False, media: str = "") -> None:
        """Show `file` in a window `width` pixels wide, as a phone or a desktop would."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=900, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self._unread.clear()
        self.call("Page.navigate", url=file.resolve().as_uri())
        while not any(m.get("method") == "Page.loadEventFired" for m in self._unread):
            self._unread.append(self._read())

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def screenshot(self, file: Path) -> None:
        """Write the whole page as a PNG."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        answer = self.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(answer["data"]))


@contextmanager
def browser() -> Iterator[Browser]:
    """Run a browser with a profile of its own for as long as the context lasts."""
    with tempfile.TemporaryDirectory(prefix="firsttouch-browser-", ignore_cleanup_errors=True) as d:
        pipes = [str(Path(d, name)) for name in ("commands", "answers")]
        for pipe in pipes:
            os.mkfifo(pipe)
        # The browser reads descriptor 3 and writes descriptor 4.
        process = subprocess.Popen(
            ["sh", "-c", 'i=$1 o=$2; shift 2; exec chromium "$@" 3<"$i" 4>"$o"', "sh", *pipes,
             *_FLAGS, f"--user-data-dir={d}/profile"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            with Path(pipes[0]).open("wb") as commands, Path(pipes[1]).open("rb") as answers:
                yield Browser(commands, answers)
        finally:
            process.terminate()
            process.wait()
