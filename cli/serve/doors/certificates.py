"""Keeps the TLS contexts of all listeners, and replaces them when their files change.

A look at the files' times, sizes and inodes every two seconds, on a thread; on SIGHUP they are read
whatever these say. New handshakes use the new keys, and no connection ends. A file that cannot be
used is told once, and the old keys stay until it changes again, be it its owner or mode.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import structlog

from security.tls.server_contexts import TlsContext, TlsContexts, load_tls
from security.tls.tls_settings import TlsFault, TlsSettings

log = structlog.get_logger("muster.serve")

_LOOK_S: Final = 2.0
Signature = tuple[tuple[int, int, int, int] | None, ...]


@dataclass(slots=True)
class _Kept:
    """The keys of one listener, and its files as they were when these were read."""

    settings: TlsSettings
    contexts: TlsContexts
    signature: Signature


class Certificates:
    """The keys of the listeners, by their names."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}
        self._asked = asyncio.Event()
        self._readings: list[asyncio.Future[None]] = []
        """Done when the files have been read that somebody asked for."""
        self._task: asyncio.Task[None] | None = None

    def add(self, listener: str, settings: TlsSettings) -> TlsContexts:
        """Read a listener's keys, and keep them up to date. Raises ``TlsFault``."""
        signature = read_signature(settings)
        loaded = load_tls(settings)
        if loaded.not_after_s < time.time():
            log.warning("certificate_expired", listener=listener)
        contexts = TlsContexts(loaded)
        self._kept[listener] = _Kept(settings, contexts, signature)
        return contexts

    def compute_not_after(self) -> Mapping[str, float]:
        """When the certificate of each listener expires, in seconds since 1970."""
        return {name: kept.contexts.current.not_after_s for name, kept in self._kept.items()}

    def start(self) -> None:
        """Look at the files from now on."""
        if self._kept:
            self._task = asyncio.create_task(self._watch(), name="muster-certificates")

    async def reload(self) -> None:
        """Read all files again, also those that look the same."""
        if self._task is None:
            return
        reading = asyncio.get_running_loop().create_future()
        self._readings.append(reading)
        self._asked.set()
        await reading

    async def stop(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None
        for reading in self._readings:
            reading.cancel()

    async def _watch(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S):
                    await self._asked.wait()
            is_asked = self._asked.is_set()
            self._asked.clear()
            count = len(self._readings)
            for listener, kept in list(self._kept.items()):
                await self._look(listener, kept, is_asked=is_asked)
            finished, self._readings = self._readings[:count], self._readings[count:]
            for reading in finished:
                if not reading.done():
                    reading.set_result(None)

    async def _look(self, listener: str, kept: _Kept, *, is_asked: bool) -> None:
        signature = await asyncio.to_thread(read_signature, kept.settings)
        if signature == kept.signature and not is_asked:
            return
        # Whatever comes of it: the same files are not told twice.
        kept.signature = signature
        try:
            loaded = await asyncio.to_thread(_load_newer, kept.settings)
        except TlsFault as fault:
            log.warning("certificate_refused", listener=listener, cause=str(fault))
            return
        except Exception as error:  # noqa: BLE001 - no file may end the look at later ones
            log.warning("certificate_refused", listener=listener, cause=type(error).__name__)
            return
        kept.contexts.replace(loaded)
        log.info("certificate_replaced", listener=listener, not_after_s=int(loaded.not_after_s))


def _load_newer(settings: TlsSettings) -> TlsContext:
    loaded = load_tls(settings)
    if loaded.not_after_s < time.time():
        raise TlsFault(f"the certificate in {settings.keystore_location} has expired")
    return loaded


def read_signature(settings: TlsSettings) -> Signature:
    """What tells that a file was written or replaced; ``None`` for one that is not there."""
    return tuple(_read_one(path) for path in settings.files)


def _read_one(path: str) -> tuple[int, int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    # The last one tells of another owner or mode, which may be what makes it readable.
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_ctime_ns
