"""One session stream of the client: what is sent and what comes back, until it breaks."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

import grpc.aio

from muster.connection.lease import SentMessages, read_clock
from muster.connection.unary import is_cancelled
from muster.v1 import group_pb2

FINISH_S = 1.0
"""How long the last words on a stream may take."""
_MESSAGE_ACTIONS_MAX = 500
_MESSAGE_BYTES_MAX = 512 * 1024


class Stream:
    """Actions of one turn of the event loop go into one message. ``sent`` is for the leases."""

    def __init__(
        self,
        call: grpc.aio.StreamStreamCall[group_pb2.SessionRequest, group_pb2.SessionResponse],
        receive: Callable[[group_pb2.SessionResponse], None],
    ) -> None:
        self._call = call
        self._receive = receive
        self._outbox: deque[group_pb2.MemberAction] = deque()
        self._pong_id: int | None = None
        self._wake = asyncio.Event()
        self._sequence = 0
        self._is_broken = False
        self._leaves_unanswered = 0
        self.is_ending = False
        self.is_finished = False
        self.sent = SentMessages()
        self.received_at = read_clock()

    @property
    def next_sequence(self) -> int:
        """The lowest sequence that what is sent from now on may have."""
        return self._sequence + 1

    def send(self, action: group_pb2.MemberAction) -> None:
        """Sends an action with the next message."""
        self._leaves_unanswered += action.HasField("leave")
        self._outbox.append(action)
        self._wake.set()

    def finish(self) -> None:
        """Nobody needs the stream any more: ends it when what is to be said has been heard.

        A call that is cancelled drops what is being written, and what the server has not read.
        """
        self.is_finished = True
        if not self._outbox and self._leaves_unanswered <= 0:
            self.shut()
            return
        self.is_ending = True
        self._wake.set()
        asyncio.get_running_loop().call_later(FINISH_S, self.shut)

    def shut(self) -> None:
        """Gives the stream up: the server is silent, or nobody needs it any more."""
        self._is_broken = True
        self._call.cancel()

    async def run(self) -> None:
        """Carries messages both ways. Returns, or raises ``AioRpcError``, when the stream ends."""
        writer = asyncio.create_task(self._write())
        try:
            await self._read()
        except asyncio.CancelledError:
            # A call that is cancelled here raises what a cancelled task does.
            if is_cancelled() or not self._is_broken:
                raise
        finally:
            self._call.cancel()
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)

    async def _read(self) -> None:
        while True:
            response = await self._call.read()
            if not isinstance(response, group_pb2.SessionResponse):
                return
            self.received_at = read_clock()
            for update in response.updates:
                self._leaves_unanswered -= update.HasField("left")
            self._receive(response)
            # After the updates: they say who is not covered by it any more.
            self.sent.note_renewed(response.renewed_sequence)
            if response.HasField("ping"):
                self._pong_id = response.ping.ping_id
                self._wake.set()

    async def _write(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._outbox or self._pong_id is not None:
                message = self._make_message()
                self.sent.note_sent(message.sequence, read_clock())
                await self._call.write(message)
            if self.is_ending:
                # The server answers what it has read, and ends the stream.
                await self._call.done_writing()
                return

    def _make_message(self) -> group_pb2.SessionRequest:
        self._sequence += 1
        message = group_pb2.SessionRequest(sequence=self._sequence)
        if self._pong_id is not None:
            message.pong.ping_id = self._pong_id
            self._pong_id = None
        size = 0
        while self._outbox and len(message.actions) < _MESSAGE_ACTIONS_MAX:
            size += self._outbox[0].ByteSize()
            if size > _MESSAGE_BYTES_MAX and message.actions:
                break
            message.actions.append(self._outbox.popleft())
        return message
