"""Expiry of committed offsets, and the removal of groups without offsets.

It follows Kafka 4.3's ``OffsetMetadataManager.cleanupExpiredOffsets`` and the groups'
``offsetExpirationCondition``:

- An offset committed with an expire timestamp expires then. Any other expires when the retention
  has passed since a base time, which depends on its group.
- Empty classic group: the base time is when the group became empty, or the time of each commit if
  the record lacks that time. Stable classic group of consumers: the time of each commit, for topics
  that no member subscribes to. In a rebalance, or with another protocol type: nothing expires.
- Group without a protocol type (a simple group): the time of each commit.
- Consumer group, empty or not: the time of each commit, for topics that no member subscribes to.
- Unsupported group types (share, streams) keep their offsets and are not removed.
- A pending transactional offset keeps the committed offset of its partition, and its group.
- An empty group that has no offsets left, or never had any, is removed.
"""

from __future__ import annotations

from collections.abc import Collection

from coordinator.core.groups.group_tombstones import compute_group_tombstones
from coordinator.core.state.classic.classic_group import ClassicGroup, ClassicGroupState
from coordinator.core.state.outcome import Outcome
from coordinator.core.state.shard import Shard
from model.commands.offsets import ExpireOffsets
from model.ids import GroupId, TopicName
from model.log.records import LegacyOffsetCommitValue, OffsetCommitKey, OffsetCommitValue, Record
from model.responses.response import Done
from model.value import value

NO_TIMESTAMP = -1


@value
class ExpiryRule:
    """The rule by which the offsets of one group expire.

    ``empty_since_ms`` (wall) is the base time of the retention; ``None`` for the time of each
    commit. Offsets of topics in ``subscribed_topics`` do not expire.
    """

    empty_since_ms: int | None = None
    subscribed_topics: Collection[TopicName] = ()


_EACH_COMMIT = ExpiryRule()


def compute_expiry_rule(shard: Shard, group_id: GroupId) -> ExpiryRule | None:
    """The expiry rule of a group in its current state; ``None`` if none of its offsets expires."""
    group = shard.consumer_groups.get(group_id)
    if group is not None:
        return ExpiryRule(None, group.subscribed_topic_names())
    if group_id in shard.foreign_groups:
        return None
    classic = shard.classic_group(group_id)
    return _EACH_COMMIT if classic is None else _compute_classic_rule(classic)


def _compute_classic_rule(group: ClassicGroup) -> ExpiryRule | None:
    if group.protocol_type is None:
        return _EACH_COMMIT
    if group.state is ClassicGroupState.EMPTY:
        return ExpiryRule(group.current_state_timestamp_ms)
    if group.state is ClassicGroupState.STABLE and group.subscribed_topics is not None:
        return ExpiryRule(None, group.subscribed_topics)
    return None


def is_expired(
    rule: ExpiryRule,
    topic: TopicName,
    offset: OffsetCommitValue | LegacyOffsetCommitValue,
    now_ms: int,
    retention_ms: int,
) -> bool:
    """Whether an offset that the group committed for the topic has expired (wall ms)."""
    if topic in rule.subscribed_topics:
        return False
    if isinstance(offset, OffsetCommitValue) and offset.expire_timestamp != NO_TIMESTAMP:
        return now_ms >= offset.expire_timestamp
    since_ms = rule.empty_since_ms
    if since_ms is None:
        since_ms = offset.commit_timestamp
    return now_ms - since_ms >= retention_ms


def is_removable(shard: Shard, group_id: GroupId) -> bool:
    """Whether the group can be removed once it has no offsets: it is empty and of a served type.

    A frozen group stays: the next group with its id would not be frozen.
    """
    if group_id in shard.freezes:
        return False
    group = shard.consumer_groups.get(group_id)
    if group is not None:
        return group.member_count == 0
    if group_id in shard.foreign_groups:
        return False
    classic = shard.classic_group(group_id)
    return classic is None or classic.state is ClassicGroupState.EMPTY


def handle_expire_offsets(shard: Shard, command: ExpireOffsets) -> Outcome:
    """Write tombstones of expired offsets, which the runtime found, and of their group.

    With ``removes_group`` these are the group's last offsets, and the group is removed if it still
    is empty.
    """
    group_id = command.group_id
    records = [
        Record(OffsetCommitKey(group_id, topic, partition), None)
        for topic, partition in command.offsets
    ]
    if command.removes_group and is_removable(shard, group_id):
        records += compute_group_tombstones(shard, group_id)
    return Outcome(tuple(records), Done(), last_offsets=command.removes_group)
