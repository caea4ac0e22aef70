"""``grpc.aio`` as the SDK sees it, over the simulated network: a channel, and its calls.

What is raised is what ``grpc.aio`` raises: ``AioRpcError`` where a call failed, ``CancelledError``
where it was cancelled on this side, by its task, by ``cancel`` or by ``close`` of its channel.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Generator
from typing import Any, TypeAlias

import grpc
import grpc.aio

from muster.v1 import group_pb2
from tests.sim.sessions.links.network import EOF, Connection, Frame, Network
from tests.sim.sessions.machines.loop import Machine, current_machine

_BACKOFF_MIN_S = 0.1
_BACKOFF_MAX_S = 2.0
_CALLS: TypeAlias = "SimUnaryCall | SimStreamCall"
_S = grpc.StatusCode


def make_error(code: grpc.StatusCode, details: str) -> grpc.aio.AioRpcError:
    """What a failed call raises."""
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), details, None)


class SimChannel:
    """A channel of one machine. It connects when it is used."""

    def __init__(self, network: Network) -> None:
        self.machine: Machine = current_machine()
        self.network = network
        self.loop = network.loop
        self._connection: Connection | None = None
        self._is_connecting = False
        self._is_closed = False
        self._failed_until_s = 0.0
        self._backoff_s = _BACKOFF_MIN_S
        self._ready: list[asyncio.Future[None]] = []
        self._waiting: list[_CALLS] = []
        self._calls: dict[int, _CALLS] = {}
        self._ids = itertools.count(1)

    # ------------------------------------------------------------------------ as of grpc.aio

    def unary_unary(
        self, path: str, request_serializer: Any, response_deserializer: Any, **_: Any
    ) -> Callable[..., SimUnaryCall]:
        def start(request: Any, timeout: float | None = None, **_: Any) -> SimUnaryCall:
            data = request_serializer(request)
            return SimUnaryCall(self, path, data, response_deserializer, timeout)

        return start

    def unary_stream(self, path: str, *_: Any, **__: Any) -> Callable[..., Any]:
        """Of no use to the SDK; a stub asks for it nevertheless."""

        def start(request: Any, **_: Any) -> Any:
            raise NotImplementedError(path)

        return start

    def stream_stream(
        self, path: str, request_serializer: Any, response_deserializer: Any, **_: Any
    ) -> Callable[..., SimStreamCall]:
        def start(requests: None, **_: Any) -> SimStreamCall:
            assert requests is None, "the SDK reads and writes"
            return SimStreamCall(self, path, request_serializer, response_deserializer)

        return start

    async def channel_ready(self) -> None:
        """Returns once it is connected, however long that takes."""
        while self._connection is None:
            if self._is_closed:
                raise grpc.aio.UsageError("Channel is closed.")
            waiting: asyncio.Future[None] = self.loop.create_future()
            self._ready.append(waiting)
            self._connect()
            await waiting

    async def close(self, grace: float | None = None) -> None:
        """Cancels what is under way."""
        if self._is_closed:
            return
        self._is_closed = True
        for call in (*self._calls.values(), *self._waiting):
            call.cancel()
        if self._connection is not None:
            self._connection.up.send(("fin",))
            self._connection = None
        self._wake()

    # ------------------------------------------------------------------------------- of calls

    def start(self, call: _CALLS) -> None:
        """Begins a call; one that cannot wait for a connection fails."""
        if self._is_closed:
            raise grpc.aio.UsageError("Channel is closed.")
        if self._connection is not None:
            self._send_start(call)
        elif self.loop.time() < self._failed_until_s:
            self.loop.call_soon(call.finish, _S.UNAVAILABLE, "failed to connect")
        else:
            self._waiting.append(call)
            self._connect()

    def send(self, call: _CALLS, frame: Frame, kinds: tuple[str, ...] = ()) -> None:
        """Sends a frame of a call."""
        connection = self._connection
        if connection is None or call.number not in self._calls:
            return
        self._maybe_late(connection, kinds)
        connection.up.send((*frame, kinds) if frame[0] == "message" else frame)

    def end(self, call: _CALLS) -> None:
        """The call has ended on this side."""
        self._calls.pop(call.number, None)
        if call in self._waiting:
            self._waiting.remove(call)

    def _send_start(self, call: _CALLS) -> None:
        call.number = next(self._ids)
        self._calls[call.number] = call
        self.send(call, ("start", call.number, call.path))
        call.on_started()

    def _maybe_late(self, connection: Connection, kinds: tuple[str, ...]) -> None:
        """From here on the connection stands, so that this comes after what a newer one brings."""
        network = self.network
        if connection.up.is_held:
            return
        for kind in kinds:
            if network.faults.strikes(f"late {kind}"):
                duration_s = network.random.uniform(0.5, 9.0)
                network.note(f"{connection.number} late {kind}")
                connection.hold((connection.up, connection.down), duration_s)
                return

    # ---------------------------------------------------------------------------- connecting

    def _connect(self) -> None:
        if self._is_connecting or self._is_closed or self._connection is not None:
            return
        self._is_connecting = True
        delay_s = max(0.0, self._failed_until_s - self.loop.time())
        self.loop.call_later(
            delay_s, self.network.connect, self, self._on_connected, self._on_failed
        )

    def _on_connected(self, connection: Connection) -> None:
        self._is_connecting = False
        self._backoff_s = _BACKOFF_MIN_S
        if self._is_closed:
            connection.reset()
            return
        self._connection = connection
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            self._send_start(call)
        self._wake()

    def _on_failed(self) -> None:
        self._is_connecting = False
        self._failed_until_s = self.loop.time() + self._backoff_s
        self._backoff_s = min(2 * self._backoff_s, _BACKOFF_MAX_S)
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            call.finish(_S.UNAVAILABLE, "failed to connect")
        if any(not ready.done() for ready in self._ready):
            self._connect()

    def _wake(self) -> None:
        ready, self._ready = self._ready, []
        for waiting in ready:
            if not waiting.done():
                waiting.set_result(None)

    # ------------------------------------------------------------------- end of a connection

    def receive(self, connection: Connection, frame: Frame) -> None:
        """A frame of the server has come."""
        match frame:
            case ("message", number, data):
                if (call := self._calls.get(number)) is not None:
                    call.on_message(data)
            case ("status", number, code, details):
                if (call := self._calls.get(number)) is not None:
                    call.finish(code, details)
            case ("fin",):
                self.on_broken(connection, "Socket closed")

    def on_broken(self, connection: Connection, why: str) -> None:
        """The connection is no more: neither are its calls."""
        if self._connection is not connection:
            return
        connection.forget()
        self._connection = None
        for call in tuple(self._calls.values()):
            call.finish(_S.UNAVAILABLE, why)


class _Call:
    """What both kinds have. ``number`` is that of the call on its connection; 0 for none yet."""

    def __init__(self, channel: SimChannel, path: str) -> None:
        self.number = 0
        self.path = path
        self._channel = channel
        self._code: grpc.StatusCode | None = None
        self._details = ""
        self._is_cancelled = False

    def done(self) -> bool:
        return self._code is not None

    def cancelled(self) -> bool:
        return self._code is _S.CANCELLED

    def cancel(self) -> bool:
        if self._code is not None:
            return False
        self._is_cancelled = True
        self._channel.send(self, ("cancel", self.number))  # type: ignore[arg-type]
        self.finish(_S.CANCELLED, "Locally cancelled by application!")
        return True

    def finish(self, code: grpc.StatusCode, details: str) -> None:
        """The call has ended."""
        if self._code is None:
            self._code, self._details = code, details
            self._channel.end(self)  # type: ignore[arg-type]
            self._on_finished()

    def _on_finished(self) -> None:
        raise NotImplementedError

    def _raise_for_status(self) -> None:
        if self._is_cancelled:
            raise asyncio.CancelledError
        assert self._code is not None
        if self._code is not _S.OK:
            raise make_error(self._code, self._details)


class SimUnaryCall(_Call):
    """One request, one answer."""

    def __init__(
        self,
        channel: SimChannel,
        path: str,
        data: bytes,
        deserialize: Callable[[bytes], Any],
        timeout_s: float | None,
    ) -> None:
        super().__init__(channel, path)
        self._data = data
        self._deserialize = deserialize
        self._answer: Any = None
        self._ended: asyncio.Future[None] = channel.loop.create_future()
        self._timer: asyncio.TimerHandle | None = None
        if timeout_s is not None:
            self._timer = channel.loop.call_later(timeout_s, self._on_deadline)
        channel.start(self)

    def on_started(self) -> None:
        kinds = ("call", self.path.rpartition("/")[2])
        self._channel.send(self, ("message", self.number, self._data), kinds)

    def on_message(self, data: bytes) -> None:
        self._answer = self._deserialize(data)

    def _on_deadline(self) -> None:
        if self._code is None:
            self._channel.send(self, ("cancel", self.number))
            self.finish(_S.DEADLINE_EXCEEDED, "Deadline Exceeded")

    def _on_finished(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if not self._ended.done():
            self._ended.set_result(None)

    def __await__(self) -> Generator[Any, None, Any]:
        try:
            yield from self._ended
        except asyncio.CancelledError:
            self.cancel()
            raise
        self._raise_for_status()
        return self._answer


class SimStreamCall(_Call):
    """Messages both ways. The order of what ends it and of what is still unread is grpc's."""

    def __init__(
        self,
        channel: SimChannel,
        path: str,
        serialize: Callable[[Any], bytes],
        deserialize: Callable[[bytes], Any],
    ) -> None:
        super().__init__(channel, path)
        self._serialize = serialize
        self._deserialize = deserialize
        self._inbox: deque[bytes] = deque()
        self._started = asyncio.Event()
        self._changed = asyncio.Event()
        channel.start(self)

    def on_started(self) -> None:
        self._started.set()

    def on_message(self, data: bytes) -> None:
        self._inbox.append(data)
        self._changed.set()

    def _on_finished(self) -> None:
        self._started.set()
        self._changed.set()

    async def read(self) -> Any:
        """A message, or EOF where the server has ended the call."""
        if self._code is not None:
            self._raise_for_status()
            return EOF
        try:
            await self._started.wait()
            while not self._inbox and self._code is None:
                self._changed.clear()
                await self._changed.wait()
        except asyncio.CancelledError:
            self.cancel()
            raise
        if self._inbox and not self._is_cancelled:
            return self._deserialize(self._inbox.popleft())
        self._raise_for_status()
        return EOF

    async def write(self, message: group_pb2.SessionRequest) -> None:
        """Returns once the message is on its way."""
        if self._code is not None:
            raise asyncio.InvalidStateError("RPC already finished.")
        try:
            await self._started.wait()
            if self._code is not None:
                self._raise_for_status()
            kinds = tuple(_SHORT.get(str(a.WhichOneof("action")), "") for a in message.actions)
            data = self._serialize(message)
            self._channel.send(self, ("message", self.number, data), kinds)
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.cancel()
            raise

    async def done_writing(self) -> None:
        """Says that nothing more comes from here."""
        if self._code is None:
            await self._started.wait()
            self._channel.send(self, ("half", self.number))


_SHORT = {kind: kind for kind in ("join", "acknowledge", "commit", "leave")}
