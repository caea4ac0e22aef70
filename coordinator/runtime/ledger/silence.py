"""How long nothing had been heard from the member that a rebalance is due to."""

from __future__ import annotations

from typing import Final

from coordinator.core.deadlines.liveness import Liveness
from coordinator.core.deadlines.member_liveness import compute_heard_ms
from coordinator.core.state.shard import Shard
from model.commands.classic import ClassicDeadline
from model.commands.consumer import Deadline, ExpireMember
from model.ids import GroupId, MemberId
from model.past.causes import Cause, CauseKind

GONE: Final = (
    CauseKind.MEMBER_LEFT,
    CauseKind.SESSION_EXPIRED,
    CauseKind.REBALANCE_TIMEOUT,
    CauseKind.ADMINISTRATOR,
    CauseKind.MIGRATED,
)
"""Causes whose member is gone; of a migration, the one whose protocol the group no longer has."""


def compute_silence_ms(
    liveness: Liveness,
    shard: Shard,
    group_id: GroupId,
    cause: Cause,
    command: object,
    now_ms: int,
) -> int | None:
    """The age of the member's last heartbeat before it went; ``None`` if it has not gone."""
    if cause.kind not in GONE:
        return None
    if isinstance(command, ExpireMember) and command.deadline is Deadline.SESSION:
        return command.silent_ms
    entry = liveness.get(group_id, cause.member_id)
    now_ms -= liveness.stalls.stalled_ms
    if entry is not None:
        return max(now_ms - compute_heard_ms(entry), 0)
    timeout_ms = _find_session_timeout_ms(shard, group_id, cause.member_id)
    if timeout_ms is None:
        return None
    at_ms = liveness.classic.get(group_id, ClassicDeadline.SESSION, cause.member_id)
    # It is no longer armed once it has expired.
    return timeout_ms if at_ms is None else max(timeout_ms - (at_ms - now_ms), 0)


def _find_session_timeout_ms(shard: Shard, group_id: GroupId, member_id: MemberId) -> int | None:
    """The session timeout of a member that uses the classic protocol."""
    group = shard.consumer_groups.get(group_id)
    member = None if group is None else group.member(member_id)
    if member is not None:
        return None if member.classic is None else member.classic.session_timeout_ms
    classic = shard.classic_group(group_id)
    known = None if classic is None else classic.members.get(member_id)
    return None if known is None else known.session_timeout_ms
