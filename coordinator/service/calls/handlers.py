"""Binding of service methods to a gRPC server, with a proper status for malformed requests.

By default gRPC answers a malformed request with UNKNOWN and the text of the exception, and logs a
traceback. Calls in flight are counted, so that a stopping server knows when all are answered.

A listener that authenticates its clients asks who calls before it decodes the request: a message of
4 MiB may become an object of more than 100 MiB.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from time import perf_counter
from typing import Any, Final, TypeAlias

import grpc
import grpc.aio
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from coordinator.runtime.loop.stats import Histograms
from coordinator.service.calls.grpc_caller import CALLING
from coordinator.service.calls.guard import Guard
from coordinator.service.calls.throttle import Throttle
from coordinator.service.credentials.authentication import Authenticate

_Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]
Behaviour: TypeAlias = Callable[[Any, _Context], Awaitable[Any]]

MALFORMED: Final = object()
"""Stands for a request that cannot be decoded."""

MALFORMED_MESSAGE: Final = "the request is not a valid message of this method"


class CallsInFlight:
    """Counts calls until their status is sent; ``wait_until_none`` returns when none is left."""

    __slots__ = ("_count", "_none")

    def __init__(self) -> None:
        self._count = 0
        self._none = asyncio.Event()
        self._none.set()

    def begin(self, context: _Context) -> None:
        self._count += 1
        self._none.clear()
        # The stub has a class where any callable is meant.
        context.add_done_callback(self._on_done)  # type: ignore[arg-type]

    async def wait_until_none(self) -> None:
        await self._none.wait()

    def _on_done(self, call: object) -> None:
        self._count -= 1
        if not self._count:
            self._none.set()


def make_handler(
    service: ServiceDescriptor,
    servicer: object,
    calls: CallsInFlight,
    throttle: Throttle,
    times: Histograms,
    authenticate: Authenticate | None = None,
    *,
    make: Callable[..., grpc.RpcMethodHandler[Any, Any]] | None = None,
) -> grpc.GenericRpcHandler[Any, Any]:
    """Bind the methods of ``servicer``, named as in the service.

    A method with one request and a stream of responses writes these to its context. ``times`` gets
    how long calls with one request took, by ``Service/Method``. ``make`` binds one method as
    ``make_method`` does, which is the default.
    """
    make = make or make_method
    methods = {
        method.name: make(
            method, getattr(servicer, method.name), calls, throttle, times, authenticate
        )
        for method in service.methods
    }
    return grpc.method_handlers_generic_handler(service.full_name, methods)


def make_foreign_handler(
    service: ServiceDescriptor, servicer: object, authenticate: Authenticate | None = None
) -> grpc.GenericRpcHandler[Any, Any]:
    """Bind gRPC's own health or reflection service, whose calls are not counted as in flight."""
    methods = {
        method.name: _make_foreign_method(method, getattr(servicer, method.name), authenticate)
        for method in service.methods
    }
    return grpc.method_handlers_generic_handler(service.full_name, methods)


def _make_foreign_method(
    method: MethodDescriptor, behaviour: Any, authenticate: Authenticate | None
) -> grpc.RpcMethodHandler[Any, Any]:
    deserialize, encode = _make_codec(method)

    async def handle(request: object, context: _Context) -> Any:
        if authenticate is not None:
            await authenticate(context)
        await _check(request, context)
        try:
            return await behaviour(request, context)
        except NotImplementedError as error:
            # gRPC's asyncio health servicer does not implement List.
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, str(error))

    async def handle_stream(requests: Any, context: _Context) -> AsyncIterator[Any]:
        if authenticate is not None:
            await authenticate(context)

        async def checked() -> AsyncIterator[object]:
            async for request in requests:
                await _check(request, context)
                yield request

        async for answer in behaviour(checked(), context):
            yield answer

    if method.client_streaming:
        return grpc.stream_stream_rpc_method_handler(handle_stream, deserialize, encode)
    if method.server_streaming:
        return grpc.unary_stream_rpc_method_handler(handle, deserialize, encode)
    return grpc.unary_unary_rpc_method_handler(handle, deserialize, encode)


async def _check(request: object, context: _Context) -> None:
    if request is MALFORMED:
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, MALFORMED_MESSAGE)


def make_method(
    method: MethodDescriptor,
    behaviour: Behaviour,
    calls: CallsInFlight,
    throttle: Throttle,
    times: Histograms,
    authenticate: Authenticate | None,
) -> grpc.RpcMethodHandler[Any, Any]:
    """Bind one method; see ``make_handler``."""
    deserialize, encode = _make_codec(method)
    service, is_stream = method.containing_service.name, method.client_streaming
    # How long a stream of responses lasts is up to its client.
    is_timed, name = not (is_stream or method.server_streaming), f"{service}/{method.name}"

    async def handle(request: Any, context: _Context) -> Any:
        began_s = perf_counter()
        calls.begin(context)
        try:
            if authenticate is not None:
                CALLING.set(await authenticate(context))
            if not is_stream:
                request = deserialize(request)
                await _check(request, context)
            if throttle.is_active and not is_stream:
                async with Guard(context):
                    await throttle.admit(service, method.name, request, context.peer())
            return await behaviour(request, context)
        except grpc.aio.AbortError as error:
            # gRPC stores the exception in the call, and its frames reference the call: a cycle.
            error.__context__ = error.__traceback__ = None
            raise
        finally:
            if is_timed:
                times[name].add(perf_counter() - began_s)

    if method.client_streaming:
        return grpc.stream_stream_rpc_method_handler(handle, deserialize, encode)
    if method.server_streaming:
        return grpc.unary_stream_rpc_method_handler(handle, None, encode)
    return grpc.unary_unary_rpc_method_handler(handle, None, encode)


def _encode_once(encode: Callable[[Any], bytes], message: Any) -> bytes:
    """Several streams may be sent the same message, encoded once for all."""
    return message if isinstance(message, bytes) else encode(message)


def _make_codec(
    method: MethodDescriptor,
) -> tuple[Callable[[bytes], object], Callable[[Any], bytes]]:
    decode = GetMessageClass(method.input_type).FromString
    encode: Callable[[Any], bytes] = GetMessageClass(method.output_type).SerializeToString
    if method.server_streaming and not method.client_streaming:
        encode = partial(_encode_once, encode)

    def deserialize(data: bytes) -> object:
        try:
            return decode(data)
        except DecodeError:
            return MALFORMED

    return deserialize, encode
