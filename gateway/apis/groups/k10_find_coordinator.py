"""FindCoordinator (10), versions 0 to 6: this server coordinates every group.

Transactional ids and share groups have no coordinator: COORDINATOR_NOT_AVAILABLE. Some clients
retry that error immediately (Java's admin client, thousands of times a second), so its response
carries a throttle time, which clients obey (KIP-219). Needs DESCRIBE on the group.
"""

from __future__ import annotations

from typing import Any, Final

from coordinator.runtime.loop.slices import Steps
from gateway.api import Api, RequestContext
from gateway.codec.kio_schema import response_schema
from gateway.long_answers import LongAnswer, reply_in_slices
from model.access.acls import Operation, ResourceType
from model.errors import ErrorCode

KEY = 10
wire = response_schema(KEY)
single = response_schema(KEY, 3)
"""The last version with a single key."""

GROUP: Final = 0
AGAIN_AFTER_MS: Final = 100
KEY_TYPES: Final = {GROUP: "group", 1: "transactional id", 2: "share group"}
SINGLE_VERSIONS: Final = range(4)
NOT_AUTHORIZED: Final = (ErrorCode.GROUP_AUTHORIZATION_FAILED, "Not authorized to the group.")


def handle(context: RequestContext, request: Any) -> None:
    """Return the coordinator of each key."""
    key_type = getattr(request, "key_type", GROUP)
    if context.version in SINGLE_VERSIONS:
        _reply_single(context, key_type, request.key)
        return
    reply_in_slices(context, _find(context, request, key_type))


def _find(context: RequestContext, request: Any, key_type: int) -> Steps[Any]:
    throttle_ms = 0

    def find(key: str) -> Any:
        nonlocal throttle_ms
        code, message = _check(context, key_type, key)
        throttle_ms = max(throttle_ms, compute_throttle_ms(code))
        return wire.Coordinator(key=key, **_place(context, code, message))

    keys = request.coordinator_keys
    rows = yield from LongAnswer(context).encode(
        wire.Coordinator, ("coordinators",), len(keys), map(find, keys)
    )
    return wire.FindCoordinatorResponse(throttle_time=throttle_ms, coordinators=rows)


def _reply_single(context: RequestContext, key_type: int, key: str) -> None:
    code, message = _check(context, key_type, key)
    if code is ErrorCode.NONE:
        message = "NONE"
    place = _place(context, code, message)
    context.reply(single.FindCoordinatorResponse(throttle_time=compute_throttle_ms(code), **place))


def compute_throttle_ms(code: int) -> int:
    """For how long the client is to wait before it asks again."""
    return AGAIN_AFTER_MS if code == ErrorCode.COORDINATOR_NOT_AVAILABLE else 0


def _check(context: RequestContext, key_type: int, key: str) -> tuple[ErrorCode, str]:
    if key_type not in KEY_TYPES:
        return ErrorCode.INVALID_REQUEST, f"Unknown coordinator key type {key_type}."
    if key_type != GROUP:
        message = f"This server does not coordinate a {KEY_TYPES[key_type]}."
        return ErrorCode.COORDINATOR_NOT_AVAILABLE, message
    return check_group(context, key)


def check_group(context: RequestContext, group_id: str) -> tuple[ErrorCode, str]:
    """Why a client is not told that this server coordinates the group; NONE if it is told."""
    if not context.authorized(Operation.DESCRIBE, ResourceType.GROUP, group_id):
        return NOT_AUTHORIZED
    if not context.node.coordinator.is_serving():
        return ErrorCode.COORDINATOR_NOT_AVAILABLE, "The coordinator is starting or stopping."
    return ErrorCode.NONE, ""


def _place(context: RequestContext, code: ErrorCode, message: str) -> dict[str, Any]:
    found = code is ErrorCode.NONE
    host, port = context.advertised if found else ("", -1)
    return {
        "node_id": context.node.settings.node_id if found else -1,
        "host": host,
        "port": port,
        "error_code": code,
        "error_message": message,
    }


def failed(context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
    """Fail every key."""
    place = _place(context, code, message)
    if context.version in SINGLE_VERSIONS:
        return single.FindCoordinatorResponse(throttle_time=0, **place)
    return wire.FindCoordinatorResponse(
        throttle_time=0,
        coordinators=[wire.Coordinator(key=key, **place) for key in request.coordinator_keys],
    )


API = Api(key=KEY, name="FindCoordinator", versions=range(7), handler=handle, failed=failed)
