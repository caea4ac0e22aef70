"""Keeps the public keys of tokens: reads a JSON Web Key Set at start, and again when it may differ.

A set is read every so often, a file also when it has changed, and when a token has a key that is
not known: then at most once in some seconds, whatever tokens clients send. The keys that were read
last stay in force while no newer ones can be had. Everything that may block runs on a thread.
"""

from __future__ import annotations

import asyncio
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import structlog

from security.sasl.jwks import JWKS_BYTES_MAX, NO_KEYS, KeySet, parse_jwks

log = structlog.get_logger("muster.serve")

LOOK_AGAIN_S: Final = 5.0
"""Unknown keys are looked for once in this time; the change of a file is noticed within it."""
_READ_TIMEOUT_S: Final = 5.0
_CHUNK: Final = 64 * 1024
_WAITING_MAX: Final = 1_000


class JwksKeys:
    """The keys of one set. Lives on the event loop."""

    def __init__(self, url: str, refresh_ms: int, backoff_ms: int, backoff_max_ms: int) -> None:
        """Raises ``ValueError`` for a URL of another kind."""
        self.url = url
        self._path = find_path(url)
        self._refresh_s = refresh_ms / 1_000
        self._backoff_s = backoff_ms / 1_000
        self._backoff_max_s = max(backoff_ms, backoff_max_ms) / 1_000
        self._keys = NO_KEYS
        self._stamp: tuple[int, ...] | None = None
        self._read_at = 0.0
        self._failures = 0
        self._reading: asyncio.Task[None] | None = None
        self._running: asyncio.Task[None] | None = None
        self._waiting: list[Callable[[], None]] = []

    @property
    def keys(self) -> KeySet:
        """The keys that were read last."""
        return self._keys

    async def start(self) -> None:
        """Read the keys for the first time. Raises ``ValueError`` if a file cannot be used."""
        try:
            await self._read()
        except ValueError as error:
            if self._path is not None:
                raise ValueError(f"{self.url}: {error}") from error
            self._note_failure(error)
        self._running = asyncio.create_task(self._run())

    def stop(self) -> None:
        """Read no more."""
        for task in (self._running, self._reading):
            if task is not None:
                task.cancel()

    def refresh(self, done: Callable[[], None]) -> None:
        """Look for newer keys and call ``done``; at once if that was just done."""
        if self._reading is None and time.monotonic() - self._read_at >= LOOK_AGAIN_S:
            self._reading = asyncio.create_task(self._try())
        if self._reading is None or len(self._waiting) >= _WAITING_MAX:
            done()
        else:
            self._waiting.append(done)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._compute_wait_s())
            if self._reading is None and self._is_due():
                self._reading = asyncio.create_task(self._try())

    def _compute_wait_s(self) -> float:
        """How long until it may be time to read again."""
        if self._path is not None:
            return min(self._refresh_s, LOOK_AGAIN_S)
        if self._failures:
            doubled = self._backoff_s * 2.0 ** min(self._failures - 1, 30)
            return min(doubled, self._backoff_max_s)
        return self._refresh_s

    def _is_due(self) -> bool:
        if self._path is None:
            return True
        is_old = time.monotonic() - self._read_at >= self._refresh_s
        return is_old or _find_stamp(self._path) != self._stamp

    async def _try(self) -> None:
        """Read the keys, and go on with the old ones if that fails."""
        try:
            await self._read()
        except ValueError as error:
            self._note_failure(error)
        finally:
            self._reading = None
            waiting, self._waiting = self._waiting, []
            for done in waiting:
                done()

    def _note_failure(self, error: ValueError) -> None:
        self._failures += 1
        log.warning("jwks_not_read", url=self.url, cause=str(error))

    async def _read(self) -> None:
        """Read the keys. Raises ``ValueError``, with one line that says why not."""
        self._read_at = time.monotonic()
        if self._path is not None:
            self._stamp = _find_stamp(self._path)
        self._keys = await _call_on_thread(lambda: parse_jwks(read_content(self.url)))
        self._failures = 0


def find_path(url: str) -> Path | None:
    """The file of a ``file:`` URL, ``None`` for one of HTTP. Raises ``ValueError`` for others."""
    parts = urlsplit(url)
    if "@" in parts.netloc:
        # It would not be sent, and it would be in the log.
        raise ValueError("leave out the user and the password")
    if parts.scheme == "file" and parts.netloc in ("", "localhost") and parts.path.startswith("/"):
        return Path(unquote(parts.path))
    if parts.scheme in ("https", "http") and parts.hostname:
        return None
    raise ValueError("write https://HOST/PATH or file:/PATH")


def read_content(url: str) -> bytes:
    """Read what is there, up to a little more than may be. Raises ``ValueError``. Blocks."""
    path = find_path(url)
    try:
        if path is not None:
            with path.open("rb") as file:
                return file.read(JWKS_BYTES_MAX + 1)
        return _fetch(url)
    except urllib.error.HTTPError as error:
        error.close()
        raise ValueError(f"the server answered with status {error.code}") from None
    except (OSError, urllib.error.URLError) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
        raise ValueError(f"it cannot be read: {reason}") from None


def _fetch(url: str) -> bytes:
    """Fetch over HTTP. A redirection is not followed: the keys are where the settings say."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    until = time.monotonic() + _READ_TIMEOUT_S
    content = bytearray()
    with opener.open(url, timeout=_READ_TIMEOUT_S) as response:
        while chunk := response.read1(_CHUNK):
            content += chunk
            if len(content) > JWKS_BYTES_MAX or time.monotonic() > until:
                break
    return bytes(content)


def _find_stamp(path: Path) -> tuple[int, ...] | None:
    """What changes when a file is written again, or gets another owner or mode."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_ctime_ns


async def _call_on_thread(call: Callable[[], KeySet]) -> KeySet:
    """Call on a thread that nobody waits for when the process ends. Raises ``ValueError``."""
    loop = asyncio.get_running_loop()
    found: asyncio.Future[KeySet] = loop.create_future()

    def settle(keys: KeySet | None, error: ValueError | None) -> None:
        if found.cancelled():
            return
        if error is not None:
            found.set_exception(error)
        elif keys is not None:
            found.set_result(keys)

    def run() -> None:
        keys, fault = None, None
        try:
            keys = call()
        except ValueError as error:
            fault = error
        except Exception as error:  # noqa: BLE001 - whoever waits must be told
            fault = ValueError(f"it cannot be read: {type(error).__name__}")
        try:
            loop.call_soon_threadsafe(settle, keys, fault)
        except RuntimeError:
            # The loop is closed: the server has stopped.
            return

    threading.Thread(target=run, name="jwks", daemon=True).start()
    return await found
