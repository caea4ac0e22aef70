"""The transport of a connection over TLS: what is between its socket and the ``Connection``.

It is the protocol of the socket's transport, and the transport of the connection, with the methods
that a ``Connection`` uses of asyncio's. asyncio's own TLS is not used: it loses alerts, hides from
``get_write_buffer_size`` what it has not encrypted yet, and bounds neither handshakes nor records.

What is written is encrypted in pieces, only as fast as the socket takes it, so a large answer is
not in memory twice. What waits counts as unsent, encrypted or not.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections import deque
from typing import Any, Final

from gateway.connection.connection import Connection
from gateway.tls.decryptions import Decryptions
from gateway.wire_clock import Clock

_RECORD_BYTES: Final = 16 * 1024
"""The most that a record holds."""
_FEW_BYTES: Final = 1_024
"""Received bytes that are decrypted at once, however long the iteration has run."""
_PIECE_BYTES: Final = 64 * 1024
"""Encrypted at once."""
_SOCKET_BYTES: Final = 256 * 1024
"""Encrypted and unsent bytes above which no more is encrypted."""


class TlsTransport(asyncio.Transport, asyncio.Protocol):
    """One connection after its handshake."""

    # More than 15 attributes: it is two halves of one stream, and they end together.

    def __init__(
        self,
        raw: asyncio.Transport,
        channel: ssl.SSLObject,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        clock: Clock,
        decryptions: Decryptions,
    ) -> None:
        super().__init__()
        self._raw = raw
        self._channel = channel
        self._incoming = incoming
        self._outgoing = outgoing
        self._clock = clock
        self._decryptions = decryptions
        self._connection: Connection | None = None
        self._arrived = b""
        self._has_turn_coming = False
        self._is_paused = False
        self._is_over = False
        self._unsent: deque[memoryview] = deque()
        self._unsent_bytes = 0
        self._high = _SOCKET_BYTES
        self._is_stalled = False
        self._is_socket_full = False
        self._is_sending = False
        self._is_closing = False

    def begin(self, connection: Connection, arrived: bytes) -> None:
        """Serve the connection; ``arrived``: what the client has sent behind its handshake."""
        self._connection = connection
        self._raw.set_protocol(self)
        self._raw.set_write_buffer_limits(high=_SOCKET_BYTES)
        self._raw.resume_reading()
        connection.connection_made(self)
        if arrived:
            self.data_received(arrived)

    # ------------------------------------------------------------ what the socket's transport calls

    def connection_lost(self, exc: Exception | None) -> None:
        connection, self._connection = self._connection, None
        self._is_closing = True
        self._drop()
        if connection is not None:
            connection.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_closing:
            return
        if self._arrived or self._is_paused:
            self._arrived += data
        elif len(data) <= _FEW_BYTES:
            self._decrypt(data)
        else:
            self._arrived = data
            self._go_on()

    def eof_received(self) -> bool:
        """The client will send nothing more: close once what is written is sent."""
        self.close()
        return True

    def pause_writing(self) -> None:
        self._is_socket_full = True
        self._tell_flow()

    def resume_writing(self) -> None:
        self._is_socket_full = False
        self._send()
        self._tell_flow()

    # --------------------------------------------------------------------------------- receiving

    def _go_on(self, *, is_its_turn: bool = False) -> None:
        """Decrypt what has arrived, piece by piece, as long as the iteration has time for it.

        ``is_its_turn``: the first piece in any case.
        """
        position, data = 0, self._arrived
        while position < len(data) and not self._is_closing and not self._is_paused:
            if not is_its_turn and not self._decryptions.has_time():
                break
            is_its_turn = False
            piece = data[position : position + _RECORD_BYTES]
            position += len(piece)
            self._decrypt(piece)
        self._arrived = b"" if self._is_closing else data[position:]
        if self._arrived:
            self._raw.pause_reading()
            self._ask_for_a_turn()
        elif position and not self._is_paused and not self._is_closing:
            self._raw.resume_reading()

    def _ask_for_a_turn(self) -> None:
        if not self._has_turn_coming and not self._is_paused:
            self._has_turn_coming = True
            self._decryptions.add(self)

    def take_turn(self) -> None:
        """Decrypt another piece."""
        self._has_turn_coming = False
        if not self._is_closing and not self._is_paused:
            self._go_on(is_its_turn=True)

    def _decrypt(self, data: bytes) -> None:
        """Decrypt all whole records, and hand over what is in them.

        A record is longer than what is in it. So a read of the bytes that have come empties their
        record, unless its beginning came earlier, and is small for a small record.
        """
        incoming, size = self._incoming, len(data)
        incoming.write(data)
        try:
            chunk = self._channel.read(size)
        except ssl.SSLError as error:
            self._hand_over(b"", error)
            return
        if 0 < len(chunk) < size and not incoming.pending and not self._outgoing.pending:
            if self._connection is not None:
                self._connection.data_received(chunk)
        else:
            self._decrypt_rest(chunk)

    def _decrypt_rest(self, chunk: bytes) -> None:
        """Go on behind the first ``chunk``, which is empty if the client has ended its side."""
        chunks: list[bytes] = []
        error = None
        try:
            while chunk:
                chunks.append(chunk)
                if len(chunks) > 1 and not self._incoming.pending:
                    break
                chunk = self._channel.read(_RECORD_BYTES)
        except ssl.SSLError as raised:
            error = raised
        self._hand_over(b"".join(chunks), error, is_over=not chunk)

    def _hand_over(self, data: bytes, error: ssl.SSLError | None, *, is_over: bool = False) -> None:
        """Pass on what is decrypted; close if the client has ended its side, or broken TLS."""
        if self._outgoing.pending:
            # An answer to a change of keys, or an alert.
            self._raw.write(self._outgoing.read())
        connection = self._connection
        if connection is None:
            return
        if data:
            connection.data_received(data)
        if error is not None and not isinstance(error, ssl.SSLWantReadError):
            # It may have answered, which fails by now, but has not closed.
            if not connection.closed:
                connection.cut("tls-record", f"a record that is none of TLS: {error.reason}")
        elif is_over and self._is_paused and not self._is_closing:
            # Its last requests wait, as they do while the end of a plain stream is not read.
            self._is_over = True
        elif is_over:
            self.close()

    # ----------------------------------------------------------------------------------- sending

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._is_closing or not data:
            return
        if self._unsent or self._is_socket_full or len(data) > _PIECE_BYTES:
            self._unsent.append(memoryview(data))
            self._unsent_bytes += len(data)
            self._send()
            self._tell_flow()
        else:
            self._encrypt(data)

    def _encrypt(self, data: bytes | bytearray | memoryview) -> None:
        try:
            self._channel.write(data)
        except ssl.SSLError:
            # The client has ended its side of the session, or broken it.
            self.abort()
            return
        self._raw.write(self._outgoing.read())

    def _send(self) -> None:
        """Encrypt what waits, until the socket has enough."""
        while self._unsent and not self._is_socket_full and not self._raw.is_closing():
            if self._raw.get_write_buffer_size() >= _SOCKET_BYTES:
                break
            first = self._unsent[0]
            piece = first[:_PIECE_BYTES]
            if len(piece) == len(first):
                self._unsent.popleft()
            else:
                self._unsent[0] = first[_PIECE_BYTES:]
            self._unsent_bytes -= len(piece)
            self._encrypt(piece)
        if self._unsent and not self._is_socket_full:
            # uvloop sends at the end of the iteration, and says nothing if the socket takes all.
            if not self._is_sending:
                self._is_sending = True
                self._clock.call_later(0, self._send_on)
        elif self._is_closing and not self._unsent:
            self._end()

    def _send_on(self) -> None:
        self._is_sending = False
        self._send()
        self._tell_flow()

    def _tell_flow(self) -> None:
        """Tell the connection when too many bytes are unsent, and when few are again."""
        connection = self._connection
        if connection is None:
            return
        size = self.get_write_buffer_size()
        if not self._is_stalled and size > self._high:
            self._is_stalled = True
            connection.pause_writing()
        elif self._is_stalled and size <= self._high // 4:
            self._is_stalled = False
            connection.resume_writing()

    # ---------------------------------------------------------------- what the connection calls

    def close(self) -> None:
        """Close once everything that is written is sent; the client is told the end."""
        if not self._is_closing:
            self._is_closing = True
            self._raw.pause_reading()
            self._send()

    def _end(self) -> None:
        if self._raw.is_closing():
            return
        # It wants to read the client's own end as well, which nobody waits for.
        with contextlib.suppress(ssl.SSLError):
            self._channel.unwrap()
        if self._outgoing.pending:
            self._raw.write(self._outgoing.read())
        self._raw.close()

    def abort(self) -> None:
        """Close at once."""
        self._is_closing = True
        self._drop()
        self._raw.abort()

    def _drop(self) -> None:
        self._arrived = b""
        self._unsent.clear()
        self._unsent_bytes = 0

    def is_closing(self) -> bool:
        return self._is_closing or self._raw.is_closing()

    def pause_reading(self) -> None:
        self._is_paused = True
        self._raw.pause_reading()

    def resume_reading(self) -> None:
        self._is_paused = False
        if self._is_over:
            self.close()
        elif self._arrived:
            self._ask_for_a_turn()
        elif not self._is_closing:
            self._raw.resume_reading()

    def is_reading(self) -> bool:
        return not self._is_closing and self._raw.is_reading()

    def get_write_buffer_size(self) -> int:
        return self._unsent_bytes + self._raw.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """``low`` is a quarter of ``high``, as in asyncio."""
        self._high = _SOCKET_BYTES if high is None else high

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._raw.get_extra_info(name, default)
