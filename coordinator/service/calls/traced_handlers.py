"""Bindings of service methods whose calls are traced; other servers are bound by ``handlers``.

A call with one request and one response is one trip. Commits and heartbeats on a session stream are
trips of their own, as a stream may last for days.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import grpc
import grpc.aio
from google.protobuf.descriptor import MethodDescriptor

from coordinator.runtime.trips.traceparent import find_parent
from coordinator.runtime.trips.trip import Door, Stage, Trip
from coordinator.runtime.trips.trips import CALL, TEXT_MAX, Stream, Trips
from coordinator.service.calls.handlers import Behaviour, make_method

_Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]

FAILED = "UNKNOWN"
"""The status of a call that a bug has ended."""


def make_traced_method(
    trips: Trips, method: MethodDescriptor, behaviour: Behaviour, *given: Any
) -> Any:
    """Bind one method as ``make_method`` does, with the rest of what that is given."""
    name = f"{method.containing_service.full_name}/{method.name}"
    handler: Any = make_method(method, _note_decoded(trips, behaviour), *given)
    if method.client_streaming:
        return handler._replace(stream_stream=_trace_stream(name, handler.stream_stream))
    if method.server_streaming:
        return handler
    return handler._replace(unary_unary=_trace_call(trips, name, handler.unary_unary))


def _note_decoded(trips: Trips, behaviour: Behaviour) -> Behaviour:
    async def behave(request: Any, context: _Context) -> Any:
        call = CALL.get()
        if isinstance(call, Trip):
            call.note(Stage.DECODED, trips.now_ns())
        return await behaviour(request, context)

    return behave


def _trace_call(trips: Trips, name: str, handle: Behaviour) -> Behaviour:
    async def traced(request: Any, context: _Context) -> Any:
        trip = trips.begin(parent=find_parent(context.invocation_metadata()))
        if trip is None:
            return await handle(request, context)
        trip.door, trip.name = Door.GRPC, name
        CALL.set(trip)
        try:
            answer = await handle(request, context)
        except BaseException:
            trip.status = _find_status(context)
            raise
        else:
            trip.error = trip.error or _find_error(answer)
            return answer
        finally:
            CALL.set(None)
            trips.finish(trip)

    return traced


def _trace_stream(name: str, handle: Behaviour) -> Behaviour:
    async def traced(requests: Any, context: _Context) -> Any:
        CALL.set(Stream(name, find_parent(context.invocation_metadata())))
        return await handle(requests, context)

    return traced


def _find_status(context: _Context) -> str:
    status = context.code()
    return status.name if isinstance(status, grpc.StatusCode) else FAILED


def _find_error(answer: Any) -> str:
    """The name of the error that a response has, if its message has a place for one."""
    error = getattr(answer, "error", None)
    return str(getattr(error, "reason", ""))[:TEXT_MAX]
