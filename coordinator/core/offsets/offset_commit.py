"""OffsetCommit: validation, and the records of a commit.

The offsets themselves are in the store and read on demand; memory does not hold them. The rows are
those of tests/scenarios/README.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from coordinator.core.classic.classic_members import check_classic_commit, compute_session
from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.consumer.consumer_member import Member
from coordinator.core.state.foreign_groups import ForeignGroup, ForeignMember, ShareGroup
from coordinator.core.state.outcome import ArmClassicDeadline, Outcome
from coordinator.core.state.shard import Shard
from model.commands.offsets import (
    COMMIT_PARTITIONS_MAX,
    DeleteTopicOffsets,
    OffsetCommit,
    TopicOffsets,
)
from model.errors import (
    ErrorCode,
    GroupError,
    GroupIdNotFound,
    IllegalGeneration,
    StaleMemberEpoch,
    UnknownMemberId,
    UnknownServerError,
    UnsupportedVersion,
)
from model.ids import MemberId
from model.log.commit_records import OffsetColumns, OffsetCommits, OffsetRow
from model.log.records import OffsetCommitKey, OffsetCommitValue, Record, TopicPartitions
from model.now import Now
from model.responses.offsets import OffsetCommitResponse, PartitionResult, TopicResult
from model.responses.response import Done
from model.topics import Topic

NO_EPOCH = -1


class _Results(dict[int, PartitionResult]):
    """Interns the results of committed partitions, which differ in the partition only."""

    def __missing__(self, partition: int) -> PartitionResult:
        result = self[partition] = PartitionResult(partition, ErrorCode.NONE)
        return result


COMMITTED = _Results()
"""The result of a committed partition, by partition."""

CheckPartition = Callable[[Topic, int], None]
"""Raises an error, which fails the whole request, if a partition must not be committed."""


# -------------------------------------------------------------------------------------- commit


def check_commit_size(topics: Sequence[TopicOffsets]) -> None:
    """Raise ``UnknownServerError``, Kafka's error for a batch that is too large."""
    count = sum([len(topic.partitions) for topic in topics])
    if count > COMMIT_PARTITIONS_MAX:
        raise UnknownServerError(
            f"A commit of {count} partitions exceeds the maximum of {COMMIT_PARTITIONS_MAX}: split "
            "it into several requests."
        )


def handle_offset_commit(shard: Shard, command: OffsetCommit, now: Now) -> Outcome:
    """Write the offsets of the partitions that exist (rows O2, O5, O6, O8, O9).

    Missing topics and partitions fail individually. A request with no others is answered without
    checks of the group: Kafka's broker does so before it calls the coordinator.
    """
    check_commit_size(command.topics)
    resolved = [(wanted, find_topic(shard, wanted)) for wanted in command.topics]
    check: CheckPartition | None = None
    session: ArmClassicDeadline | None = None
    for wanted, topic in resolved:
        if topic is not None and has_partition(topic, wanted):
            check = check_commit(shard, command)
            session = compute_session_of_committer(shard, command)
            break
    written = _Written([], [])
    results = [
        compute_unknown_topic_result(wanted)
        if topic is None
        else _commit_topic(shard, command, now, wanted, topic, check, written=written)
        for wanted, topic in resolved
        if len(wanted.offsets.partitions) or topic is None
    ]
    return Outcome(
        records=tuple(written.records),
        response=OffsetCommitResponse(tuple(results)),
        commits=tuple(written.commits),
        effects=() if session is None else (session,),
    )


def compute_session_of_committer(shard: Shard, command: OffsetCommit) -> ArmClassicDeadline | None:
    """The session that a commit by a member of a classic group renews; ``None`` for others.

    As in Kafka's ``OffsetMetadataManager.validateOffsetCommit``, commits renew sessions in
    classic groups only.
    """
    if command.group_id in shard.consumer_groups:
        return None
    group = shard.classic_group(command.group_id)
    member = None if group is None else group.members.get(command.member_id)
    return None if group is None or member is None else compute_session(group, member)


class _Written(NamedTuple):
    """The records and commits of a request, collected topic by topic."""

    records: list[Record]
    commits: list[OffsetCommits]


def find_topic(shard: Shard, wanted: TopicOffsets) -> Topic | None:
    """The requested topic, by id if the request has one, else by name."""
    if wanted.topic_id is not None:
        return shard.image.by_id.get(wanted.topic_id)
    return None if wanted.name is None else shard.image.by_name.get(wanted.name)


def has_partition(topic: Topic, wanted: TopicOffsets) -> bool:
    """Whether any of the requested partitions exists."""
    return any(0 <= partition < topic.partitions for partition in wanted.offsets.partitions)


def compute_unknown_topic_result(wanted: TopicOffsets) -> TopicResult:
    """The result for a missing topic: the same error for each partition."""
    error = (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if wanted.topic_id is None
        else ErrorCode.UNKNOWN_TOPIC_ID
    )
    results = tuple(PartitionResult(partition, error) for partition in wanted.offsets.partitions)
    return TopicResult(wanted.name, wanted.topic_id, results)


def check_commit(shard: Shard, command: OffsetCommit) -> CheckPartition | None:
    """Raise an error unless the caller may commit in the group.

    Returns the check that remains for each partition, ``None`` if there is none. As in Kafka, the
    member id alone identifies a member: the id of a replaced member is unknown, and the instance id
    is ignored (a commit without a member may have one, KAFKA-14201).
    """
    group = shard.consumer_groups.get(command.group_id)
    epoch = NO_EPOCH if command.member_epoch is None else command.member_epoch
    if group is None:
        _check_without_group(shard, command, epoch)
        return None
    if epoch < 0 and group.member_count == 0:
        return None
    member = group.member(command.member_id)
    if member is None or member.is_reserved:
        raise UnknownMemberId(
            f"Member {command.member_id} is not a member of group {command.group_id}."
        )
    if not command.by_consumer_protocol and member.classic is None:
        raise UnsupportedVersion(
            "OffsetCommit version 9 or above must be used by members using the consumer group "
            "protocol"
        )
    if epoch == member.member_epoch:
        return compute_reset_check(shard, group, member) if shard.resets else None
    if epoch > member.member_epoch:
        raise compute_stale(
            member,
            f"Received member epoch {epoch} is newer than current member epoch "
            f"{member.member_epoch}.",
        )
    return compute_assignment_epoch_check(group, member, epoch)


def compute_stale(member: Member, message: str) -> GroupError:
    """The error for an epoch that is not the member's; a classic member sent it as a generation."""
    if member.classic is not None:
        return IllegalGeneration(message)
    return StaleMemberEpoch(message)


def _check_without_group(shard: Shard, command: OffsetCommit, epoch: int) -> None:
    foreign = shard.foreign_groups.get(command.group_id)
    if foreign is not None:
        _check_foreign_group(foreign, command, epoch)
        return
    classic = shard.classic_group(command.group_id)
    if classic is not None:
        check_classic_commit(
            classic, command.member_id, command.instance_id, epoch, in_transaction=False
        )
        return
    if epoch < 0:
        return
    if command.group_id in shard.offset_groups:
        raise UnknownMemberId(
            f"Member {command.member_id} is not a member of group {command.group_id}."
        )
    if command.by_consumer_protocol:
        raise GroupIdNotFound(f"Group {command.group_id} not found.")
    raise IllegalGeneration(f"Group {command.group_id} has no generation {epoch}.")


def _check_foreign_group(group: ForeignGroup, command: OffsetCommit, epoch: int) -> None:
    """Check a commit to an unsupported group type.

    A share group has no offsets. A streams group accepts commits without a member while it is
    empty, and commits of a member with exactly its last epoch: it does not rebalance here.
    """
    if isinstance(group, ShareGroup):
        raise GroupIdNotFound(f"Group {group.group_id} is not a consumer group.")
    if epoch < 0 and not group.members:
        return
    member = check_foreign_member(group, command.member_id)
    if not command.by_consumer_protocol:
        raise UnsupportedVersion(
            "OffsetCommit version 9 or above must be used by members using the streams group "
            "protocol"
        )
    if epoch != member.member_epoch:
        raise StaleMemberEpoch(
            f"The received member epoch {epoch} does not match the expected member epoch "
            f"{member.member_epoch}."
        )


def check_foreign_member(group: ForeignGroup, member_id: MemberId | None) -> ForeignMember:
    """The member with that id; raises ``UnknownMemberId`` if there is none."""
    member = None if member_id is None else group.members.get(member_id)
    if member is None:
        raise UnknownMemberId(f"Member {member_id} is not a member of group {group.group_id}.")
    return member


def compute_assignment_epoch_check(
    group: ConsumerGroup, member: Member, epoch: int
) -> CheckPartition:
    """The check of an older epoch: the member must have owned the partition then (KIP-1251)."""
    held = {*member.assigned, *member.pending_revocation}

    def check(topic: Topic, partition: int) -> None:
        number = -1
        if partition < group.numbers.partitions(topic.topic_id):
            number = group.numbers.numbers_of(topic.topic_id, (partition,))[0]
        if number not in held:
            raise compute_stale(
                member,
                f"Partition {topic.name}-{partition} is not assigned or pending revocation for "
                "member.",
            )
        assigned_at = group.assignment_epoch_of[number]
        if epoch < assigned_at:
            raise compute_stale(
                member,
                f"Received member epoch {epoch} is older than assignment epoch {assigned_at} "
                f"for partition {topic.name}-{partition}.",
            )

    return check


def compute_reset_check(
    shard: Shard, group: ConsumerGroup, member: Member
) -> CheckPartition | None:
    """The check of the member's own epoch: partitions of a reset are committed by their owner.

    All reach the epoch of the reset, and who owned a partition before it may still have a commit on
    the way. ``None`` if the group's offsets were not reset.
    """
    reset = shard.resets.get(group.group_id)
    if reset is None:
        return None
    of_reset, owner = reset.find_numbers(group), group.owner

    def check(topic: Topic, partition: int) -> None:
        numbers = group.numbers.known_numbers((TopicPartitions(topic.topic_id, (partition,)),))
        if any(each in of_reset and owner[each] != member.slot for each in numbers):
            raise compute_stale(
                member,
                f"The offset of partition {topic.name}-{partition} was reset, and the partition is "
                "not assigned to the member.",
            )

    return check


def _commit_topic(
    shard: Shard,
    command: OffsetCommit,
    now: Now,
    wanted: TopicOffsets,
    topic: Topic,
    check: CheckPartition | None,
    *,
    written: _Written,
) -> TopicResult:
    """Collect the records of one topic in ``written``; returns the results of its partitions."""
    limit = shard.settings.offset_metadata_max_bytes
    offsets = wanted.offsets
    if check is None and command.retention_time_ms is None and _are_plain(offsets, topic, limit):
        if len(offsets.partitions):
            written.commits.append(
                OffsetCommits(command.group_id, topic.name, topic.topic_id, now.wall_ms, offsets)
            )
        results = tuple([COMMITTED[partition] for partition in offsets.partitions])
        return TopicResult(topic.name, topic.topic_id, results)
    return TopicResult(
        topic.name,
        topic.topic_id,
        tuple(
            _commit_partition(command, now, row, topic, check, limit, records=written.records)
            for row in offsets.rows()
        ),
    )


def _are_plain(offsets: OffsetColumns, topic: Topic, metadata_limit: int) -> bool:
    """Whether all offsets are certainly valid: partitions exist, and metadata is short.

    Kafka counts the UTF-16 code units of metadata; a text of half the limit cannot exceed it.
    """
    partitions, harmless = offsets.partitions, metadata_limit // 2
    return (
        not len(partitions) or 0 <= min(partitions) <= max(partitions) < topic.partitions
    ) and max(map(len, offsets.metadata), default=0) <= harmless


def _commit_partition(
    command: OffsetCommit,
    now: Now,
    row: OffsetRow,
    topic: Topic,
    check: CheckPartition | None,
    metadata_limit: int,
    *,
    records: list[Record],
) -> PartitionResult:
    partition, offset, leader_epoch, metadata = row
    error = compute_partition_error(topic, partition, metadata, metadata_limit)
    if error is not ErrorCode.NONE:
        return PartitionResult(partition, error)
    if check is not None:
        check(topic, partition)
    retention_ms = command.retention_time_ms
    value = OffsetCommitValue(
        offset,
        leader_epoch,
        metadata,
        now.wall_ms,
        -1 if retention_ms is None else now.wall_ms + retention_ms,
        topic.topic_id,
    )
    key = OffsetCommitKey(command.group_id, topic.name, partition)
    records.append(Record(key, value))
    return COMMITTED[partition]


def compute_partition_error(
    topic: Topic, partition: int, metadata: str, metadata_limit: int
) -> ErrorCode:
    """The error of a single offset, independent of the group (row O9); NONE if it is valid."""
    if not 0 <= partition < topic.partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    units = len(metadata.encode("utf-16-le", "surrogatepass")) // 2
    return ErrorCode.OFFSET_METADATA_TOO_LARGE if units > metadata_limit else ErrorCode.NONE


def handle_delete_topic_offsets(shard: Shard, command: DeleteTopicOffsets) -> Outcome:
    """Write tombstones for offsets of a deleted topic that the runtime found in the store."""
    return Outcome(
        records=tuple(
            Record(OffsetCommitKey(command.group_id, command.topic, partition), None)
            for partition in command.partitions
        ),
        response=Done(),
    )
