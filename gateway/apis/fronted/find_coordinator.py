"""FindCoordinator (10) in front of a cluster: by the place of each group.

Groups that are here or on their way here have Muster's node. All others, and transactional ids,
have the relay of the broker that the cluster names; only their keys are passed on. A group that
another Muster has is there. DESCRIBE on the group is checked by whoever answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from coordinator.runtime.loop.slices import Steps
from gateway.api import Api, RequestContext
from gateway.apis.fronted.passed_apis import ask
from gateway.apis.fronted.request_frames import encode_frame
from gateway.apis.groups import k10_find_coordinator as k10
from gateway.authorized_operations import may_see
from gateway.codec.decoding_in_slices import decode_in_slices
from gateway.codec.kio_schema import response_type
from gateway.fronting.front import Front
from gateway.long_answers import DECISIONS_SLICE, LongAnswer, handle_in_slices, pace
from model.access.acls import Operation, ResourceType
from model.errors import ErrorCode
from model.places import Place

TIMEOUT_S: Final = 20.0
"""Less than clients wait, so that they are told to come again."""
CAUSE: Final = "a client looked for its coordinator"
_HERE: Final = frozenset({Place.TAKING, Place.MUSTER})
_UNAVAILABLE: Final = (ErrorCode.COORDINATOR_NOT_AVAILABLE, "The cluster does not answer.")


@dataclass(frozen=True, slots=True)
class Found:
    """Where a key is, or the error that it gets."""

    code: int
    message: str | None = None
    node_id: int = -1
    host: str = ""
    port: int = -1


def handle(context: RequestContext, request: Any) -> None:
    """Return the coordinator of each key."""
    handle_in_slices(context, _handle(context, request))


def _handle(context: RequestContext, request: Any) -> Steps[None]:
    is_single = context.version in k10.SINGLE_VERSIONS
    keys: Sequence[str] = (request.key,) if is_single else request.coordinator_keys
    found = yield from _find_here(context, getattr(request, "key_type", k10.GROUP), keys)
    passed = tuple(key for key in dict.fromkeys(keys) if key not in found)
    if not passed:
        yield from _reply(context, keys, found, 0)
        return
    if not is_single:
        request = replace(request, coordinator_keys=passed)
    frame = yield from encode_frame(context, request)

    def on_body(body: bytes | None) -> None:
        handle_in_slices(context, _answer(context, keys, found, passed, body))

    ask(context, frame, on_body, TIMEOUT_S)


def _find_here(
    context: RequestContext, key_type: int, keys: Iterable[str]
) -> Steps[dict[str, Found]]:
    """What is known without the cluster, by key."""
    found: dict[str, Found] = {}
    if key_type != k10.GROUP:
        return found
    front = context.node.front
    assert front is not None
    for key, is_slice_done in pace(keys, DECISIONS_SLICE):
        here = _find_group(context, front, key)
        if here is not None:
            found[key] = here
        if is_slice_done:
            yield
    return found


def _find_group(context: RequestContext, front: Front, group_id: str) -> Found | None:
    place = front.find_place(group_id)
    if place in _HERE:
        code, message = k10.check_group(context, group_id)
        if code is not ErrorCode.NONE:
            return Found(code, message)
        return Found(code, message, front.node_id, *context.advertised)
    if place is not Place.UPSTREAM:
        return None
    other = front.other_muster_of(group_id)
    if other is None and not front.matches(group_id):
        return None
    if not context.authorized(Operation.DESCRIBE, ResourceType.GROUP, group_id):
        return Found(*k10.NOT_AUTHORIZED)
    if other is not None:
        return Found(ErrorCode.NONE, "", *other)
    if not may_see(context, Operation.READ, ResourceType.GROUP, group_id):
        # It looks at the group and cannot join it: no cause to do something to it.
        return None
    front.ask_to_take(group_id, CAUSE)
    return None


def _answer(
    context: RequestContext,
    keys: Sequence[str],
    found: Mapping[str, Found],
    passed: Sequence[str],
    body: bytes | None,
) -> Steps[None]:
    """Reply with what was found here and what the cluster said."""
    if body is None:
        theirs = dict.fromkeys(passed, Found(*_UNAVAILABLE))
        yield from _reply(context, keys, {**found, **theirs}, k10.AGAIN_AFTER_MS)
        return
    entity = response_type(k10.KEY, context.version)
    response = yield from decode_in_slices(entity, body, 0, len(body), len(body))
    if context.version in k10.SINGLE_VERSIONS:
        rows = {passed[0]: response}
    else:
        rows = {row.key: row for row in response.coordinators}
    theirs = {}
    for key, is_slice_done in pace(passed, DECISIONS_SLICE):
        theirs[key] = _name_relay(context, rows.get(key))
        if is_slice_done:
            yield
    throttle_ms = getattr(response, "throttle_time", 0)
    yield from _reply(context, keys, {**found, **theirs}, throttle_ms)


def _name_relay(context: RequestContext, row: Any) -> Found:
    """What the cluster said of a key, with the address of the broker's relay."""
    if row is None:
        return Found(*_UNAVAILABLE)
    message = getattr(row, "error_message", None)
    if row.error_code:
        return Found(row.error_code, message)
    front = context.node.front
    assert front is not None
    address = front.address_of(row.node_id)
    if address is None:
        return Found(ErrorCode.COORDINATOR_NOT_AVAILABLE, "The broker has no relay.")
    return Found(ErrorCode.NONE, message, row.node_id, *address)


def _reply(
    context: RequestContext, keys: Sequence[str], found: Mapping[str, Found], throttle_ms: int
) -> Steps[None]:
    if context.version in k10.SINGLE_VERSIONS:
        row = found[keys[0]]
        message = row.message or ("" if row.code else "NONE")
        throttle_ms = max(throttle_ms, k10.compute_throttle_ms(row.code))
        fields = _compute_fields(replace(row, message=message))
        context.reply(k10.single.FindCoordinatorResponse(throttle_time=throttle_ms, **fields))
        return
    for row in found.values():
        throttle_ms = max(throttle_ms, k10.compute_throttle_ms(row.code))

    def make(key: str) -> Any:
        return k10.wire.Coordinator(key=key, **_compute_fields(found[key]))

    rows = yield from LongAnswer(context).encode(
        k10.wire.Coordinator, ("coordinators",), len(keys), map(make, keys)
    )
    context.reply(k10.wire.FindCoordinatorResponse(throttle_time=throttle_ms, coordinators=rows))


def _compute_fields(found: Found) -> dict[str, Any]:
    return {
        "node_id": found.node_id,
        "host": found.host,
        "port": found.port,
        "error_code": found.code,
        "error_message": found.message,
    }


API: Final[Api] = replace(k10.API, handler=handle, is_large=True)
