"""``grpc.aio.server`` over the simulated network: runs the real servicers, call by call."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

import grpc
import grpc.aio

from tests.sim.sessions.links.network import EOF, Connection, Frame, Network
from tests.sim.sessions.machines.loop import Machine, current_machine

_S = grpc.StatusCode


class _Details(NamedTuple):
    """As ``grpc.HandlerCallDetails``."""

    method: str
    invocation_metadata: tuple[()]


class SimServer:
    """As much of ``grpc.aio.Server`` as ``GrpcServer`` uses."""

    def __init__(self, network: Network) -> None:
        self.machine: Machine = current_machine()
        self.network = network
        self._handlers: list[Any] = []
        self._calls: dict[tuple[int, int], ServerCall] = {}
        self._connections: dict[int, Connection] = {}
        self._is_stopping = False

    # ------------------------------------------------------------------------ as of grpc.aio

    def add_generic_rpc_handlers(self, handlers: Sequence[Any]) -> None:
        self._handlers += handlers

    def add_registered_method_handlers(self, service: str, handlers: Any) -> None:
        """The handlers of generated code, which it adds in the other way too."""

    def add_insecure_port(self, address: str) -> int:
        return 1

    async def start(self) -> None:
        self.network.server = self

    async def stop(self, grace: float | None) -> None:
        """No new calls; those that are under way end, or are cancelled after the grace."""
        self._is_stopping = True
        if self.network.server is self:
            self.network.server = None
        tasks = [call.task for call in self._calls.values() if call.task is not None]
        if tasks and grace:
            await asyncio.wait(tasks, timeout=grace)
        for call in tuple(self._calls.values()):
            call.cancel()
        for connection in tuple(self._connections.values()):
            connection.down.send(("fin",))
        self._connections.clear()

    # ------------------------------------------------------------------------ of the network

    def receive(self, connection: Connection, frame: Frame) -> None:
        """A frame of a client has come."""
        self._connections[connection.number] = connection
        match frame:
            case ("start", number, path):
                self._start(connection, number, path)
            case ("message", number, data, kinds):
                if (call := self._calls.get((connection.number, number))) is not None:
                    call.on_message(data)
                self._maybe_unanswered(connection, kinds)
            case ("half", number):
                if (call := self._calls.get((connection.number, number))) is not None:
                    call.on_half_closed()
            case ("cancel", number):
                if (call := self._calls.get((connection.number, number))) is not None:
                    call.cancel()
            case ("fin",):
                self.on_broken(connection, "closed")

    def on_broken(self, connection: Connection, why: str) -> None:
        """The connection is no more: its calls are cancelled."""
        connection.forget()
        self._connections.pop(connection.number, None)
        for (number, _), call in tuple(self._calls.items()):
            if number == connection.number:
                call.cancel()

    def end(self, call: ServerCall) -> None:
        """The call has ended."""
        self._calls.pop((call.connection.number, call.number), None)

    def _start(self, connection: Connection, number: int, path: str) -> None:
        if self._is_stopping:
            connection.down.send(("status", number, _S.UNAVAILABLE, "the server stops"))
            return
        handler = self._find(path)
        call = ServerCall(self, connection, number, handler)
        self._calls[connection.number, number] = call
        if handler.request_streaming:
            call.run()

    def _find(self, path: str) -> Any:
        details = _Details(path, ())
        for handlers in self._handlers:
            handler = handlers.service(details)
            if handler is not None:
                return handler
        raise AssertionError(f"nobody serves {path}")

    def _maybe_unanswered(self, connection: Connection, kinds: tuple[str, ...]) -> None:
        """What comes of this request is not heard by the client."""
        network = self.network
        if connection.down.is_held or connection.down.is_cut:
            return
        for kind in kinds:
            if network.faults.strikes(f"unanswered {kind}"):
                network.note(f"{connection.number} unanswered {kind}")
                how = network.random.randrange(4)
                if how == 0:
                    # Whatever is answered from here on is lost with the connection.
                    connection.down.cut()
                    network.later(network.random.uniform(0.01, 0.5), connection.reset)
                else:
                    duration_s = network.random.uniform(0.5, 9.0)
                    ways = (connection.down,) if how == 1 else (connection.up, connection.down)
                    connection.hold(ways, duration_s, is_lost=how == 3)
                return


class ServerCall:
    """One call, and its ``ServicerContext``."""

    def __init__(
        self, server: SimServer, connection: Connection, number: int, handler: Any
    ) -> None:
        self.connection = connection
        self.number = number
        self.task: asyncio.Task[None] | None = None
        self._server = server
        self._handler = handler
        self._inbox: deque[bytes] = deque()
        self._changed = asyncio.Event()
        self._callbacks: list[Callable[[Any], object]] = []
        self._is_over = False
        self._is_half_closed = False

    # --------------------------------------------------------------------- as ServicerContext

    def peer(self) -> str:
        return f"ipv4:127.0.0.1:{40_000 + self.connection.number}"

    def add_done_callback(self, callback: Callable[[Any], object]) -> None:
        self._callbacks.append(callback)

    async def read(self) -> Any:
        """A message, or EOF where the client has gone."""
        while not self._inbox:
            if self._is_over or self._is_half_closed:
                return EOF
            self._changed.clear()
            await self._changed.wait()
        return self._handler.request_deserializer(self._inbox.popleft())

    async def send_initial_metadata(self, metadata: Any) -> None:
        """Returns once it is on its way; nobody looks at it."""
        await asyncio.sleep(0)

    async def write(self, message: Any) -> None:
        """Returns once the message is on its way."""
        if self._is_over:
            raise grpc.aio.UsageError("RPC already finished.")
        data = self._handler.response_serializer(message)
        self.connection.down.send(("message", self.number, data))
        await asyncio.sleep(0)

    async def abort(
        self, code: grpc.StatusCode, details: str = "", trailing_metadata: Any = ()
    ) -> NoReturn:
        self._finish(code, details)
        raise grpc.aio.AbortError("Locally aborted.")

    # -------------------------------------------------------------------------- of the server

    def on_message(self, data: bytes) -> None:
        self._inbox.append(data)
        self._changed.set()
        if not self._handler.request_streaming and self.task is None:
            self.run()

    def on_half_closed(self) -> None:
        """The client sends no more."""
        self._is_half_closed = True
        self._changed.set()

    def run(self) -> None:
        """The servicer begins."""
        self.task = asyncio.get_running_loop().create_task(self._run())

    def cancel(self) -> None:
        """The client has gone, or cancelled the call."""
        if self._is_over:
            return
        self._is_over = True
        self._changed.set()
        if self.task is not None:
            self.task.cancel()
        self._server.end(self)
        self._call_back()

    async def _run(self) -> None:
        try:
            if self._handler.request_streaming:
                await self._handler.stream_stream(None, self)
            else:
                request = self._inbox.popleft()
                if self._handler.request_deserializer is not None:
                    request = self._handler.request_deserializer(request)
                answer = await self._handler.unary_unary(request, self)
                if not self._is_over:
                    data = self._handler.response_serializer(answer)
                    self.connection.down.send(("message", self.number, data))
        except grpc.aio.AbortError:
            return
        except asyncio.CancelledError:
            self._finish(_S.CANCELLED, "cancelled")
            raise
        except Exception as error:
            self._finish(_S.UNKNOWN, f"Unexpected {type(error)}: {error}")
            raise
        self._finish(_S.OK, "")

    def _finish(self, code: grpc.StatusCode, details: str) -> None:
        if self._is_over:
            return
        self._is_over = True
        self.connection.down.send(("status", self.number, code, details))
        self._server.end(self)
        self._call_back()

    def _call_back(self) -> None:
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)
