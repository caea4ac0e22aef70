"""One session stream of the client: sends actions and receives updates until it breaks."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

import grpc.aio

from muster.connection.lease import SentMessages, read_clock
from muster.connection.unary import is_cancelled
from muster.v1 import group_pb2

FINISH_S = 1.0
"""How long the last messages of a stream may take."""
_MESSAGE_ACTIONS_MAX = 500
_MESSAGE_BYTES_MAX = 512 * 1024


class Stream:
    """Batches the actions of one event-loop iteration; leases are computed from ``sent``."""

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
        """The sequence of the next message."""
        return self._sequence + 1

    def send(self, action: group_pb2.MemberAction) -> None:
        """Send an action with the next message."""
        self._leaves_unanswered += action.HasField("leave")
        self._outbox.append(action)
        self._wake.set()

    def finish(self) -> None:
        """End the stream once the server has received the last actions.

        Cancelling the call would drop messages that are being written or that the server has not
        read.
        """
        self.is_finished = True
        if not self._outbox and self._leaves_unanswered <= 0:
            self.shut()
            return
        self.is_ending = True
        self._wake.set()
        asyncio.get_running_loop().call_later(FINISH_S, self.shut)

    def hand_over(self) -> None:
        """End the stream once the server has received what was sent; another one follows."""
        self.is_ending = True
        self._wake.set()
        asyncio.get_running_loop().call_later(FINISH_S, self.shut)

    def shut(self) -> None:
        """Cancel the stream: the server is silent, or no member is left."""
        self._is_broken = True
        self._call.cancel()

    async def run(self) -> None:
        """Read and write until the stream ends. Raises ``AioRpcError`` if it breaks."""
        writer = asyncio.create_task(self._write())
        try:
            await self._read()
        except asyncio.CancelledError:
            # ``shut`` cancels the call, which raises the same as cancelling the task.
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
            # After the updates, which say which members it no longer renews.
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
                # The server answers everything that it has read, and then ends the stream.
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
