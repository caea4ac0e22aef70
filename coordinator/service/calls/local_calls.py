"""Calls of the gRPC services from within the server, for whoever else serves people.

What asks here is held to what gRPC holds its clients to: rights, quotas, limits, what is left out
of an answer, and the texts of errors.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, NoReturn, TypeAlias, cast

import grpc
import grpc.aio
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status

from coordinator.service.calls.grpc_caller import CALLING
from coordinator.service.calls.guard import Guard
from coordinator.service.calls.handlers import CallsInFlight
from coordinator.service.calls.throttle import Throttle
from coordinator.service.credentials.authentication import Authenticate
from coordinator.service.wire.error_statuses import DETAILS_KEY
from security.identity import Identity

WRITTEN_MAX: Final = 1
"""So many messages of a stream wait for who reads them; the servicer waits meanwhile.

What shows a state has the newest to write when it may: more would be older states that wait.
"""

_Trailers: TypeAlias = Sequence[tuple[str, str | bytes]]
_Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who asks: ``peer`` is written as gRPC writes it, such as ``ipv4:127.0.0.1:50412``."""

    identity: Identity
    peer: str


class CallRefused(grpc.aio.AbortError):
    """The status of a call that did not succeed.

    ``reason`` is the name of a Kafka error or of a refusal, empty if there is none; ``about`` the
    metadata of ``google.rpc.ErrorInfo``.
    """

    def __init__(
        self,
        status: grpc.StatusCode,
        message: str,
        reason: str = "",
        about: Mapping[str, str] = _NOTHING,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.reason = reason
        self.about = about


class LocalContext:
    """What servicers and ``Authenticate`` ask of the context of a call."""

    def __init__(
        self, peer: str, metadata: _Trailers = (), certificates: Sequence[bytes] = ()
    ) -> None:
        """``metadata`` is what the call presents; ``certificates`` are in PEM."""
        self._peer = peer
        self._metadata = metadata
        self._certificates = certificates
        self._on_done: list[Callable[[object], None]] = []
        self.written: asyncio.Queue[Message | bytes] = asyncio.Queue(WRITTEN_MAX)

    def peer(self) -> str:
        return self._peer

    def invocation_metadata(self) -> _Trailers:
        return self._metadata

    def auth_context(self) -> Mapping[str, Sequence[bytes]]:
        return {"x509_pem_cert": self._certificates} if self._certificates else {}

    async def send_initial_metadata(self, metadata: _Trailers) -> None:
        """Nobody waits for it here."""

    async def write(self, message: Message | bytes) -> None:
        await self.written.put(message)

    async def abort(
        self, code: grpc.StatusCode, details: str = "", trailing_metadata: _Trailers = ()
    ) -> NoReturn:
        info = _find_info(trailing_metadata)
        raise CallRefused(code, details, info.reason, dict(info.metadata))

    def add_done_callback(self, callback: Callable[[object], None]) -> None:
        self._on_done.append(callback)

    def finish(self) -> None:
        """The call has ended."""
        for callback in self._on_done:
            callback(self)


@dataclass(frozen=True, slots=True)
class LocalCalls:
    """The servicers of a gRPC server, by the name of their service (``AdminService``)."""

    services: Mapping[str, tuple[ServiceDescriptor, object]]
    throttle: Throttle
    in_flight: CallsInFlight
    _stopped: asyncio.Event = field(default_factory=asyncio.Event)

    async def call(self, service: str, method: str, request: Message, visitor: Visitor) -> Any:
        """The response; of a method with a stream of responses an async iterator of them.

        An iterator begins when it is read; one that is not read to its end must be closed
        (``aclose``). Raises ``CallRefused``.
        """
        if self._stopped.is_set():
            raise CallRefused(grpc.StatusCode.UNAVAILABLE, "the server is stopping")
        descriptor, servicer = self.services[service]
        behaviour = getattr(servicer, method)
        context = LocalContext(visitor.peer)

        async def carry_out() -> Any:
            CALLING.set(visitor.identity)
            as_context = cast(_Context, context)
            self.in_flight.begin(as_context)
            try:
                if self.throttle.is_active:
                    async with Guard(as_context):
                        await self.throttle.admit(service, method, request, visitor.peer)
                return await behaviour(request, as_context)
            finally:
                context.finish()

        described = descriptor.methods_by_name[method]
        if described.server_streaming:
            return _read(context, carry_out, GetMessageClass(described.output_type))
        # A task of its own has a context of its own, in which CALLING is set.
        task = asyncio.create_task(carry_out())
        try:
            return await task
        finally:
            # Otherwise its exception and the frames that that references form a cycle.
            del task

    def stop(self) -> None:
        """Refuse calls from now on."""
        self._stopped.set()


async def _read(
    context: LocalContext, carry_out: Callable[[], Coroutine[Any, Any, Any]], kind: type[Message]
) -> AsyncIterator[Message]:
    """What the servicer writes, to its end. Raises ``CallRefused``.

    What is written to many is written as bytes, which gRPC sends as they are.
    """

    def decode(message: Message | bytes) -> Message:
        return kind.FromString(message) if isinstance(message, bytes) else message

    task = asyncio.create_task(carry_out())
    reading = asyncio.create_task(context.written.get())
    try:
        while True:
            await asyncio.wait((reading, task), return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                # First, or it would take what is left.
                reading.cancel()
                break
            message = reading.result()
            reading = asyncio.create_task(context.written.get())
            yield decode(message)
        while not context.written.empty():
            yield decode(context.written.get_nowait())
        await task
    finally:
        reading.cancel()
        task.cancel()
        await asyncio.wait((reading, task))


async def authenticate_locally(
    authenticate: Authenticate,
    peer: str,
    *,
    authorization: str | None = None,
    certificate: bytes | None = None,
) -> Identity:
    """Who the credentials show, as for a call that presents them.

    ``authorization`` is ``Bearer TOKEN`` or ``Basic base64(user:password)``, ``certificate`` a PEM.
    Raises ``CallRefused``.
    """
    metadata = () if authorization is None else (("authorization", authorization),)
    context = LocalContext(peer, metadata, () if certificate is None else (certificate,))
    return await authenticate(cast(_Context, context))


def _find_info(trailers: _Trailers) -> ErrorInfo:
    info = ErrorInfo()
    for key, value in trailers:
        if key == DETAILS_KEY and isinstance(value, bytes):
            for detail in Status.FromString(value).details:
                if detail.Unpack(info):
                    return info
    return info
