"""A real browser for tests: Chromium without a window, asked by its DevTools over two pipes.

Nothing but the standard library: messages are JSON, each ended by a zero byte.
"""

from __future__ import annotations

import base64
import json
import os
import selectors
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.kafka.prerequisites import MissingPrerequisite

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_DEADLINE_S = 90.0
_STOP_S = 20.0
_READ, _WRITE = 3, 4
"""The descriptors that Chromium reads from and writes to."""

_ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


def find_browser() -> str:
    """The path of Chromium, or raises MissingPrerequisite."""
    for name in _NAMES:
        path = shutil.which(name)
        if path is not None:
            return path
    raise MissingPrerequisite("needs Chromium to look at a report: install chromium")


class Tab:
    """A page, and all that it said and asked for. ``errors`` has what a console would show."""

    def __init__(self, process: subprocess.Popen[bytes], write: int, read: int) -> None:
        self.errors: list[str] = []
        self.requests: list[str] = []
        self._process = process
        self._write, self._read = write, read
        self._pending = b""
        self._number = 0
        self._session: str | None = None
        self._events: list[dict[str, Any]] = []
        self._selector = selectors.DefaultSelector()
        self._selector.register(read, selectors.EVENT_READ)
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """What a method of the DevTools protocol answers."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + _DEADLINE_S
        while True:
            answer = self._receive(deadline)
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return dict(answer["result"])

    def open(self, page: Path) -> None:
        """Loads a file, to its end."""
        self.go(page.absolute().as_uri())

    def go(self, url: str) -> None:
        """Loads a page, to its end."""
        self._events.clear()
        self.ask("Page.navigate", url=url)
        deadline = time.monotonic() + _DEADLINE_S
        while not any(event["method"] == "Page.loadEventFired" for event in self._events):
            self._receive(deadline)

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression on the page, which must be JSON."""
        found = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait_for(self, expression: str, within_s: float = 30.0) -> Any:
        """The value of an expression once it is true."""
        deadline = time.monotonic() + within_s
        while not (value := self.evaluate(expression)):
            assert time.monotonic() < deadline, f"{expression} is {value!r}; {self.errors}"
            time.sleep(0.05)
        return value

    def press(self, key: str) -> None:
        """Press a key that is a character."""
        self.ask("Input.dispatchKeyEvent", type="keyDown", text=key, key=key)
        self.ask("Input.dispatchKeyEvent", type="keyUp", key=key)

    def show(self, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """How large the window is, and which colours its user likes."""
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.ask("Emulation.setEmulatedMedia", features=features)

    def take_picture(self, file: Path, **clip: float) -> None:
        """A PNG of the page, or of a part of it: x, y, width, height."""
        more = {"clip": {**clip, "scale": 1}} if clip else {}
        picture = self.ask("Page.captureScreenshot", captureBeyondViewport=True, **more)
        file.write_bytes(base64.b64decode(picture["data"]))

    def _receive(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._pending:
            left = deadline - time.monotonic()
            if left <= 0 or not self._selector.select(left):
                raise TimeoutError("the browser does not answer")
            data = os.read(self._read, 1 << 20)
            if not data:
                raise ConnectionError(f"the browser has ended: {self._process.poll()}")
            self._pending += data
        line, _, self._pending = self._pending.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        if "method" in message:
            self._events.append(message)
            self._note(message["method"], message["params"])
        return message

    def _note(self, method: str, parameters: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Log.entryAdded":
            self.errors.append(parameters["entry"]["text"])
        elif method == "Runtime.consoleAPICalled":
            self.errors.append(json.dumps(parameters["args"]))
        elif method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(parameters["exceptionDetails"]))


@contextmanager
def open_browser(profile: Path) -> Iterator[Tab]:
    """A tab of a browser of its own, whose profile is in a folder; ended afterwards."""
    path = find_browser()
    to_browser, from_us = os.pipe()
    from_browser, to_us = os.pipe()
    # A shell gives the pipes their numbers: in a child of this process they may be taken.
    command = f'exec "$@" {_READ}<&{to_browser} {_WRITE}>&{to_us}'
    process = subprocess.Popen(
        ["bash", "-c", command, "browser", path, *_ARGUMENTS, f"--user-data-dir={profile}"],
        pass_fds=(to_browser, to_us),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_browser)
    os.close(to_us)
    try:
        yield Tab(process, from_us, from_browser)
    finally:
        os.close(from_us)
        os.close(from_browser)
        # Without its pipes Chromium ends by itself.
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
