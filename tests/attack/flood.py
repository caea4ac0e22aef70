"""Connections that send as much as is taken, and read the answers or do not."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Self

CHUNK = 1 << 18


class Flood:
    """Sockets that are closed at the end. ``sent`` counts bytes, ``received`` what came."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._selector = selectors.DefaultSelector()
        self._waiting: dict[socket.socket, memoryview] = {}
        self.sent = 0
        self.received = 0
        self.closed = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for line in list(self._waiting):
            line.close()
        self._selector.close()

    @property
    def open(self) -> int:
        return len(self._waiting)

    def connect(
        self,
        count: int,
        data: bytes = b"",
        *,
        receive_buffer: int = 0,
        source: str = "",
        waits: bool = True,
    ) -> None:
        """So many more connections, each of which is to send ``data``.

        Without ``waits`` they are on their way: one that a full queue turns away keeps nobody up.
        """
        for _ in range(count):
            line = socket.socket()
            if receive_buffer:
                line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            if source:
                line.bind((source, 0))
            line.settimeout(10 if waits else 0)
            try:
                line.connect(self._address)
            except BlockingIOError:
                pass
            except OSError:
                line.close()
                self.closed += 1
                continue
            line.setblocking(False)
            self._waiting[line] = memoryview(data)
            self._selector.register(line, selectors.EVENT_READ | selectors.EVENT_WRITE)

    def send_each(self, data: bytes) -> None:
        """Have each connection send this too."""
        for line, left in self._waiting.items():
            self._waiting[line] = memoryview(bytes(left) + data)

    def run(self, seconds: float, *, reads: bool = True) -> None:
        """Until all is sent (and, where it reads, for all of the time), or the time is over."""
        events = selectors.EVENT_READ if reads else 0
        for waiting, left in self._waiting.items():
            self._selector.modify(waiting, events | (selectors.EVENT_WRITE if left else 0) or 1)
        end = time.monotonic() + seconds
        while (left_s := end - time.monotonic()) > 0 and self._waiting:
            if not reads and not any(self._waiting.values()):
                return
            for key, mask in self._selector.select(min(left_s, 0.1)):
                line = key.fileobj
                assert isinstance(line, socket.socket)
                self._serve(line, mask, reads)

    def read_until(self, received: int, seconds: float) -> None:
        """Until so many bytes have come, or the time is over."""
        end = time.monotonic() + seconds
        while self.received < received and time.monotonic() < end and self._waiting:
            self.run(0.05)

    def _serve(self, line: socket.socket, mask: int, reads: bool) -> None:
        try:
            if mask & selectors.EVENT_WRITE and (left := self._waiting[line]):
                sent = line.send(left[:CHUNK])
                self.sent += sent
                self._waiting[line] = left = left[sent:]
                if not left:
                    self._selector.modify(line, selectors.EVENT_READ)
            if mask & selectors.EVENT_READ and reads:
                data = line.recv(CHUNK)
                self.received += len(data)
                if not data:
                    self._drop(line)
        except BlockingIOError:
            pass
        except OSError:
            self._drop(line)

    def _drop(self, line: socket.socket) -> None:
        self.closed += 1
        self._selector.unregister(line)
        del self._waiting[line]
        line.close()


def join_frames(frames: Iterable[bytes]) -> bytes:
    return b"".join(frames)
