"""Logs why a client may not join, because many clients do not show the error message."""

from __future__ import annotations

from typing import Final

import structlog

from coordinator.dispatch.handle import ShardCommand
from model.commands.classic import JoinGroup
from model.commands.consumer import ConsumerGroupHeartbeat
from model.errors import ErrorCode, GroupError
from model.ids import GroupId

log = structlog.get_logger()

_INTERVAL_MS: Final = 10_000
_GROUPS_MAX: Final = 1_000
_CODES: Final = frozenset(
    {
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.INVALID_REGULAR_EXPRESSION,
        ErrorCode.INVALID_SESSION_TIMEOUT,
        ErrorCode.UNSUPPORTED_ASSIGNOR,
    }
)
"""Errors that a client keeps getting until an operator acts."""


class RefusedJoins:
    """Logs refusals, at most one per group in ten seconds, because clients retry."""

    __slots__ = ("_next_ms",)

    def __init__(self) -> None:
        self._next_ms: dict[GroupId, int] = {}

    def note(self, command: ShardCommand, error: GroupError, now_ms: int) -> None:
        """Note a command's error response."""
        if error.code not in _CODES:
            return
        match command:
            case ConsumerGroupHeartbeat(member_epoch=0):
                is_conversion = error.code is ErrorCode.GROUP_ID_NOT_FOUND
                event = "conversion_refused" if is_conversion else "join_refused"
            case JoinGroup():
                event = "join_refused"
            case _:
                return
        if now_ms < self._next_ms.get(command.group_id, now_ms):
            return
        self._next_ms.pop(command.group_id, None)
        if len(self._next_ms) >= _GROUPS_MAX:
            del self._next_ms[next(iter(self._next_ms))]
        self._next_ms[command.group_id] = now_ms + _INTERVAL_MS
        log.warning(
            event,
            group_id=command.group_id,
            client_id=command.caller.client_id,
            client_host=command.caller.client_host,
            error=error.code.name,
            cause=error.message,
        )
