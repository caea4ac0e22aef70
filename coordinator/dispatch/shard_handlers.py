"""Handlers of commands that ask for one of two types of group, with the checks before them."""

from __future__ import annotations

from coordinator.core.classic.classic_join import (
    check_member_metadata,
    check_session_timeout,
    handle_join_group,
)
from coordinator.core.classic.classic_leave import handle_expire_classic_deadline
from coordinator.core.classic.classic_sync import handle_classic_heartbeat, handle_sync_group
from coordinator.core.consumer.heartbeat import handle_heartbeat, handle_reconcile_member
from coordinator.core.offsets.offset_commit import handle_offset_commit
from coordinator.core.offsets.transactions import handle_txn_offset_commit
from coordinator.core.state.consumer_group import ConsumerGroup
from coordinator.core.state.embedded_protocol import check_subscriptions
from coordinator.core.state.outcome import Outcome
from coordinator.core.state.shard import Shard
from coordinator.dispatch.checks import (
    check_consumer_protocol,
    check_group_id,
    check_group_id_size,
    check_member_id_size,
    check_member_request,
)
from model.commands import (
    ClassicHeartbeat,
    ConsumerGroupHeartbeat,
    ConsumerGroupLeave,
    ExpireClassicDeadline,
    JoinGroup,
    Now,
    OffsetCommit,
    ReconcileMember,
    SyncGroup,
    TxnOffsetCommit,
)
from model.errors import InvalidGroupId
from model.ids import GroupId
from translator.departure import handle_leave
from translator.translated_join import handle_join_of_classic_member, handle_reconcile_by_join_group
from translator.translated_sync import (
    handle_expire_classic_member,
    handle_heartbeat_of_classic_member,
    handle_sync_of_classic_member,
)
from translator.upgrade import find_group_to_upgrade, handle_upgrade


def handle_consumer_heartbeat(shard: Shard, command: ConsumerGroupHeartbeat, now: Now) -> Outcome:
    """A heartbeat of the consumer protocol; one that joins a classic group converts it."""
    check_consumer_protocol(shard)
    check_group_id(shard, command.group_id)
    check_member_request(shard, command)
    classic = find_group_to_upgrade(shard, command)
    if classic is not None:
        return handle_upgrade(shard, classic, command, now)
    return handle_heartbeat(shard, command, now)


def handle_consumer_leave(shard: Shard, command: ConsumerGroupLeave, now: Now) -> Outcome:
    """A heartbeat of the consumer protocol that leaves."""
    check_consumer_protocol(shard)
    check_group_id(shard, command.group_id)
    return handle_leave(shard, command, now)


def handle_second_half(shard: Shard, command: ReconcileMember, now: Now) -> Outcome:
    """The rest of a heartbeat, or of a JoinGroup on a consumer group."""
    if command.by_join_group:
        return handle_reconcile_by_join_group(shard, command, now)
    return handle_reconcile_member(shard, command, now)


def handle_join(shard: Shard, command: JoinGroup, now: Now) -> Outcome:
    """JoinGroup in a group of either type."""
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
    """SyncGroup in a group of either type."""
    group = _find_consumer_group(shard, command.group_id)
    if group is not None:
        return handle_sync_of_classic_member(shard, group, command)
    _check_classic_group_id(command.group_id)
    return handle_sync_group(shard, command, now)


def handle_heartbeat_of_classic_protocol(
    shard: Shard, command: ClassicHeartbeat, now: Now
) -> Outcome:
    """Heartbeat in a group of either type."""
    group = _find_consumer_group(shard, command.group_id)
    if group is not None:
        return handle_heartbeat_of_classic_member(shard, group, command, now)
    _check_classic_group_id(command.group_id)
    return handle_classic_heartbeat(shard, command)


def handle_classic_deadline(shard: Shard, command: ExpireClassicDeadline, now: Now) -> Outcome:
    """What the deadlines of classic members bring, in a group of either type."""
    group = _find_consumer_group(shard, command.group_id)
    if group is not None:
        return handle_expire_classic_member(shard, group, command, now)
    return handle_expire_classic_deadline(shard, command, now)


def _find_consumer_group(shard: Shard, group_id: GroupId) -> ConsumerGroup | None:
    """The consumer group that classic members are, or may become, members of."""
    group = shard.consumer_groups.get(group_id)
    return group if group is not None and group.member_count else None


def _check_classic_group_id(group_id: GroupId) -> None:
    if not group_id:
        raise InvalidGroupId("The group id is empty.")


def handle_commit(shard: Shard, command: OffsetCommit, now: Now) -> Outcome:
    """OffsetCommit, of a group id that fits into a key."""
    check_group_id_size(shard, command.group_id)
    return handle_offset_commit(shard, command, now)


def handle_transactional_commit(shard: Shard, command: TxnOffsetCommit, now: Now) -> Outcome:
    """TxnOffsetCommit, of a group id that fits into a key."""
    check_group_id_size(shard, command.group_id)
    return handle_txn_offset_commit(shard, command, now)
