"""Handlers that validate a command and select the handler for the type of its group."""

from __future__ import annotations

from coordinator.core.classic.classic_join import (
    check_member_metadata,
    check_session_timeout,
    handle_join_group,
)
from coordinator.core.classic.classic_leave import handle_expire_classic_deadline
from coordinator.core.classic.classic_sync import handle_classic_heartbeat, handle_sync_group
from coordinator.core.consumer.heartbeat import handle_heartbeat, handle_reconcile_member
from coordinator.core.offsets.commit_checks import handle_check_commit, handle_check_txn_commit
from coordinator.core.offsets.offset_commit import handle_offset_commit
from coordinator.core.offsets.transactions import handle_txn_offset_commit
from coordinator.core.state.classic.embedded_protocol import check_subscriptions
from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.outcome import Outcome
from coordinator.core.state.shard import Shard
from coordinator.dispatch.checks import (
    check_consumer_protocol,
    check_group_id,
    check_group_id_size,
    check_member_id_size,
    check_member_request,
)
from model.commands.classic import ClassicHeartbeat, ExpireClassicDeadline, JoinGroup, SyncGroup
from model.commands.consumer import ConsumerGroupHeartbeat, ConsumerGroupLeave, ReconcileMember
from model.commands.offsets import OffsetCommit
from model.commands.places import CheckCommit, CheckTxnCommit
from model.commands.transactions import TxnOffsetCommit
from model.errors import InvalidGroupId
from model.ids import GroupId
from model.now import Now
from translator.departure import handle_leave
from translator.translated_join import handle_join_of_classic_member, handle_reconcile_by_join_group
from translator.translated_sync import (
    handle_expire_classic_member,
    handle_heartbeat_of_classic_member,
    handle_sync_of_classic_member,
)
from translator.upgrade import find_group_to_upgrade, handle_upgrade


def handle_consumer_heartbeat(shard: Shard, command: ConsumerGroupHeartbeat, now: Now) -> Outcome:
    """Handle a ConsumerGroupHeartbeat; one that joins a classic group may upgrade it."""
    check_consumer_protocol(shard)
    check_group_id(shard, command.group_id)
    check_member_request(shard, command)
    classic = find_group_to_upgrade(shard, command)
    if classic is not None:
        return handle_upgrade(shard, classic, command, now)
    return handle_heartbeat(shard, command, now)


def handle_consumer_leave(shard: Shard, command: ConsumerGroupLeave, now: Now) -> Outcome:
    """Handle a ConsumerGroupHeartbeat with a leave epoch (-1 or -2)."""
    check_consumer_protocol(shard)
    check_group_id(shard, command.group_id)
    return handle_leave(shard, command, now)


def handle_continuation(shard: Shard, command: ReconcileMember, now: Now) -> Outcome:
    """Handle the continuation of a heartbeat, or of a JoinGroup on a consumer group."""
    if command.by_join_group:
        return handle_reconcile_by_join_group(shard, command, now)
    return handle_reconcile_member(shard, command, now)


def handle_join(shard: Shard, command: JoinGroup, now: Now) -> Outcome:
    """Handle a JoinGroup on a group of either type."""
    check_member_metadata(shard.settings, command)
    check_subscriptions(command, shard.settings.group_subscriptions_max)
    group = _find_consumer_group(shard, command.group_id)
    if group is not None:
        check_session_timeout(shard.settings_of(command.group_id), command)
        if command.member_id is not None:
            check_member_id_size(command.member_id)
        return handle_join_of_classic_member(shard, group, command, now)
    _check_classic_group_id(command.group_id)
    check_group_id_size(shard, command.group_id)
    return handle_join_group(shard, command, now)


def handle_sync(shard: Shard, command: SyncGroup, now: Now) -> Outcome:
    """Handle a SyncGroup on a group of either type."""
    group = _find_consumer_group(shard, command.group_id)
    if group is not None:
        return handle_sync_of_classic_member(shard, group, command)
    _check_classic_group_id(command.group_id)
    return handle_sync_group(shard, command, now)


def handle_heartbeat_of_classic_protocol(
    shard: Shard, command: ClassicHeartbeat, now: Now
) -> Outcome:
    """Handle a Heartbeat on a group of either type."""
    group = _find_consumer_group(shard, command.group_id)
    if group is not None:
        return handle_heartbeat_of_classic_member(shard, group, command, now)
    _check_classic_group_id(command.group_id)
    return handle_classic_heartbeat(shard, command)


def handle_classic_deadline(shard: Shard, command: ExpireClassicDeadline, now: Now) -> Outcome:
    """Handle an expired deadline of classic members, in a group of either type."""
    group = _find_consumer_group(shard, command.group_id)
    if group is not None:
        return handle_expire_classic_member(shard, group, command, now)
    return handle_expire_classic_deadline(shard, command, now)


def _find_consumer_group(shard: Shard, group_id: GroupId) -> ConsumerGroup | None:
    """The consumer group with this id, if it has members; an empty one may become classic.

    It may not while it is frozen.
    """
    group = shard.consumer_groups.get(group_id)
    if group is None or not (group.member_count or group_id in shard.freezes):
        return None
    return group


def _check_classic_group_id(group_id: GroupId) -> None:
    if not group_id:
        raise InvalidGroupId("The group id is empty.")


def handle_commit(shard: Shard, command: OffsetCommit, now: Now) -> Outcome:
    """Handle an OffsetCommit, after checking the group id."""
    check_group_id_size(shard, command.group_id)
    return handle_offset_commit(shard, command, now)


def handle_commit_check(shard: Shard, command: CheckCommit, now: Now) -> Outcome:
    """Check an OffsetCommit whose offsets are kept elsewhere."""
    check_group_id_size(shard, command.group_id)
    return handle_check_commit(shard, command, now)


def handle_transactional_commit_check(shard: Shard, command: CheckTxnCommit, now: Now) -> Outcome:
    """Check a TxnOffsetCommit whose offsets are kept elsewhere."""
    check_group_id_size(shard, command.group_id)
    return handle_check_txn_commit(shard, command, now)


def handle_transactional_commit(shard: Shard, command: TxnOffsetCommit, now: Now) -> Outcome:
    """Handle a TxnOffsetCommit, after checking the group id."""
    check_group_id_size(shard, command.group_id)
    return handle_txn_offset_commit(shard, command, now)
