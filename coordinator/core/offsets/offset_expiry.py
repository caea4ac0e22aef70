"""Expiry of committed offsets: which are past their retention, and which groups go with them.

Facts of Kafka 4.3's ``OffsetMetadataManager.cleanupExpiredOffsets`` and of the groups'
``offsetExpirationCondition``:

- An offset committed with an expiry of its own expires then. Any other expires when the retention
  has passed since a time that its group decides.
- A classic group that is empty counts from when it became empty, or from each commit where its
  record does not say when that was. One that is stable, of consumers, counts from each commit, for
  topics that no member subscribes to. One in a rebalance, or of another kind of member, keeps all.
- A group without protocol type is a simple one: each commit counts.
- A consumer group counts from each commit, empty or not, for topics that no member subscribes to.
- Groups that are kept and not served (share, streams) keep their offsets, and stay.
- What waits for the end of a transaction keeps its offset, and its group.
- An empty group that has no offsets left, or never had any, is removed.
"""

from __future__ import annotations

from collections.abc import Collection

from coordinator.core.groups.group_tombstones import compute_group_tombstones
from coordinator.core.state.classic_group import ClassicGroup, ClassicGroupState
from coordinator.core.state.outcome import Outcome
from coordinator.core.state.shard import Shard
from model.commands import ExpireOffsets
from model.ids import GroupId, TopicName
from model.log.records import LegacyOffsetCommitValue, OffsetCommitKey, OffsetCommitValue, Record
from model.responses import Done
from model.value import value

NO_TIMESTAMP = -1


@value
class ExpiryRule:
    """How the offsets of one group expire.

    ``empty_since_ms`` (wall) is what the retention counts from, where it is not each commit.
    Offsets of topics in ``subscribed_topics`` stay.
    """

    empty_since_ms: int | None = None
    subscribed_topics: Collection[TopicName] = ()


_EACH_COMMIT = ExpiryRule()


def compute_expiry_rule(shard: Shard, group_id: GroupId) -> ExpiryRule | None:
    """The rule of a group as it is now; ``None`` where none of its offsets expires."""
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
    """Whether an offset of the group, committed for the topic, is past its time (wall ms)."""
    if topic in rule.subscribed_topics:
        return False
    if isinstance(offset, OffsetCommitValue) and offset.expire_timestamp != NO_TIMESTAMP:
        return now_ms >= offset.expire_timestamp
    since_ms = rule.empty_since_ms
    if since_ms is None:
        since_ms = offset.commit_timestamp
    return now_ms - since_ms >= retention_ms


def is_removable(shard: Shard, group_id: GroupId) -> bool:
    """Whether a group of that id, once it has no offsets, has nothing left to be kept for."""
    group = shard.consumer_groups.get(group_id)
    if group is not None:
        return group.member_count == 0
    if group_id in shard.foreign_groups:
        return False
    classic = shard.classic_group(group_id)
    return classic is None or classic.state is ClassicGroupState.EMPTY


def handle_expire_offsets(shard: Shard, command: ExpireOffsets) -> Outcome:
    """Tombstones of offsets that the runtime found to be past their time, and of their group.

    The group is removed only if it is empty still. One that ``removes_group`` names its last.
    """
    group_id = command.group_id
    records = [
        Record(OffsetCommitKey(group_id, topic, partition), None)
        for topic, partition in command.offsets
    ]
    if command.removes_group and is_removable(shard, group_id):
        records += compute_group_tombstones(shard, group_id)
    return Outcome(tuple(records), Done(), last_offsets=command.removes_group)
