"""From messages of ``muster.v1`` to commands; pure.

What is missing, out of range or too large raises the ``GroupError`` that Kafka gives for it. What
only the group's state can judge is left to the core.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal

from coordinator.service.wire.error_statuses import InvalidField
from coordinator.service.wire.limits import Limits
from model.commands import (
    COMMIT_PARTITIONS_MAX,
    UNCHANGED,
    Caller,
    ConsumerGroupHeartbeat,
    ConsumerGroupLeave,
    OffsetCommit,
    OffsetFetch,
    TopicOffsets,
    TopicToFetch,
    Unchanged,
)
from model.errors import InvalidGroupId, InvalidRequest, InvalidTopic, UnknownTopicOrPartition
from model.ids import GroupId, InstanceId, MemberId, TopicId, TopicName
from model.local_assignors import LocalAssignor
from model.log.commit_records import OffsetRow, make_offset_columns
from model.log.records import TopicPartitions
from model.topics import TopicImage
from muster.v1 import admin_pb2, group_pb2, types_pb2

TOPIC_NAME_MAX: Final = 249
JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
STATIC_LEAVE_EPOCH: Final = -2
_JOIN_OWNS: Final = "a member that joins at epoch 0 owns nothing"


def decode_join(
    caller: Caller,
    action: group_pb2.MemberAction,
    image: TopicImage,
    limits: Limits,
    local_assignors: tuple[LocalAssignor, ...] = (),
) -> ConsumerGroupHeartbeat:
    """The full heartbeat behind a Join. Raises ``InvalidRequest`` and its like."""
    join = action.join
    if join.member_epoch < 0:
        raise InvalidRequest("a Join has member epoch 0, or the epoch of the member it resumes")
    if join.rebalance_timeout_ms <= 0:
        raise InvalidRequest("rebalance_timeout_ms must be above 0")
    if not join.HasField("subscription"):
        raise InvalidRequest("a Join must say what the member subscribes to")
    if join.member_epoch == JOIN_EPOCH and join.owned:
        raise InvalidRequest(_JOIN_OWNS)
    names, regex = _decode_subscription(join.subscription, limits)
    return ConsumerGroupHeartbeat(
        caller=caller,
        group_id=decode_group_id(action.group_id, limits),
        member_id=decode_member_id(action.member_id, limits),
        member_epoch=join.member_epoch,
        rebalance_timeout_ms=join.rebalance_timeout_ms,
        subscribed_topic_names=names,
        owned=decode_owned(join.owned, image, limits),
        rack_id=_decode_optional(join.rack_id, "rack_id", limits),
        server_assignor=_decode_optional(join.server_assignor, "server_assignor", limits),
        instance_id=_decode_instance_id(join.instance_id, limits),
        subscribed_topic_regex=regex,
        local_assignors=local_assignors,
    )


def decode_heartbeat(
    caller: Caller,
    request: group_pb2.HeartbeatRequest,
    image: TopicImage,
    limits: Limits,
) -> ConsumerGroupHeartbeat | ConsumerGroupLeave:
    """The command behind a unary heartbeat. Raises ``InvalidRequest`` and its like."""
    group_id = decode_group_id(request.group_id, limits)
    member_id = decode_member_id(request.member_id, limits)
    if request.member_epoch < 0:
        return decode_leave(
            caller, group_id, member_id, request.member_epoch, request.instance_id, limits
        )
    if request.member_epoch == JOIN_EPOCH:
        _check_first_heartbeat(request)
    names: tuple[TopicName, ...] | Literal[Unchanged.UNCHANGED] = UNCHANGED
    regex: str | Literal[Unchanged.UNCHANGED] = UNCHANGED
    if request.HasField("subscription"):
        names, regex = _decode_subscription(request.subscription, limits)
    timeout: int | Literal[Unchanged.UNCHANGED] = UNCHANGED
    if request.HasField("rebalance_timeout_ms"):
        timeout = request.rebalance_timeout_ms
        if timeout <= 0:
            raise InvalidRequest("rebalance_timeout_ms must be above 0")
    owned: tuple[TopicPartitions, ...] | None = None
    if request.member_epoch == JOIN_EPOCH:
        owned = ()
    if request.HasField("owned"):
        owned = decode_owned(request.owned.topics, image, limits)
    return ConsumerGroupHeartbeat(
        caller=caller,
        group_id=group_id,
        member_id=member_id,
        member_epoch=request.member_epoch,
        rebalance_timeout_ms=timeout,
        subscribed_topic_names=names,
        owned=owned,
        rack_id=_decode_optional(request.rack_id, "rack_id", limits),
        server_assignor=_decode_optional(request.server_assignor, "server_assignor", limits),
        instance_id=_decode_instance_id(request.instance_id, limits),
        subscribed_topic_regex=regex,
    )


def _check_first_heartbeat(request: group_pb2.HeartbeatRequest) -> None:
    """Rows C4 to C6 of Kafka's table: a member that joins says all of itself."""
    if not request.HasField("rebalance_timeout_ms"):
        raise InvalidRequest("a member that joins must say its rebalance_timeout_ms")
    if not request.HasField("subscription"):
        raise InvalidRequest("a member that joins must say what it subscribes to")
    if request.owned.topics:
        raise InvalidRequest(_JOIN_OWNS)


def decode_leave(
    caller: Caller,
    group_id: GroupId,
    member_id: MemberId,
    member_epoch: int,
    instance_id: str,
    limits: Limits,
) -> ConsumerGroupLeave:
    """Raises ``InvalidRequest`` for an epoch that is neither -1 nor -2 with an instance id."""
    instance = _decode_instance_id(instance_id, limits)
    if member_epoch not in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
        raise InvalidRequest(f"member epoch {member_epoch} is below -2: leave with -1")
    if member_epoch == STATIC_LEAVE_EPOCH and instance is None:
        raise InvalidRequest("only a static member, with an instance id, leaves with epoch -2")
    return ConsumerGroupLeave(caller, group_id, member_id, member_epoch, instance)


def decode_stream_commit(
    caller: Caller, action: group_pb2.MemberAction, limits: Limits
) -> OffsetCommit:
    """The command behind a Commit on a session."""
    return OffsetCommit(
        caller=caller,
        group_id=decode_group_id(action.group_id, limits),
        member_id=decode_member_id(action.member_id, limits),
        member_epoch=action.commit.member_epoch,
        topics=decode_offsets(action.commit.topics, limits),
    )


def decode_commit(
    caller: Caller, request: group_pb2.CommitOffsetsRequest, limits: Limits
) -> OffsetCommit:
    """The command behind a unary commit."""
    epoch = request.member_epoch if request.HasField("member_epoch") else None
    if epoch is not None and epoch < 0:
        raise InvalidRequest("leave member_epoch out to commit without being a member")
    if epoch is None and request.member_id:
        raise InvalidRequest("a commit with a member_id needs its member_epoch")
    member_id = MemberId("") if epoch is None else decode_member_id(request.member_id, limits)
    return OffsetCommit(
        caller=caller,
        group_id=decode_offset_group_id(request.group_id, limits),
        member_id=member_id,
        member_epoch=epoch,
        topics=decode_offsets(request.topics, limits),
        instance_id=_decode_instance_id(request.instance_id, limits),
    )


def decode_fetch(
    caller: Caller, request: group_pb2.FetchOffsetsRequest, limits: Limits
) -> OffsetFetch:
    """The command behind a fetch of offsets."""
    topics: tuple[TopicToFetch, ...] | None = None
    if request.HasField("partitions"):
        entries = request.partitions.topics
        _check_partitions(sum(len(entry.partitions) for entry in entries), limits)
        topics = tuple(
            TopicToFetch(*_decode_topic(entry), _decode_indexes(entry.partitions))
            for entry in entries
        )
    return OffsetFetch(
        caller=caller,
        group_id=decode_any_group_id(request.group_id, limits),
        topics=topics,
        member_id=decode_member_id(request.member_id, limits) if request.member_id else None,
        member_epoch=request.member_epoch if request.HasField("member_epoch") else None,
        require_stable=request.require_stable,
    )


def decode_group_id(group_id: str, limits: Limits) -> GroupId:
    """For heartbeats: Kafka calls a group id that is blank an invalid request."""
    if not group_id.strip():
        raise InvalidRequest("group_id is missing")
    return _check_group_id_length(group_id, limits)


def decode_any_group_id(group_id: str, limits: Limits) -> GroupId:
    """For what Kafka also takes for the empty id, by which old clients have committed offsets."""
    return _check_group_id_length(group_id, limits)


def decode_offset_group_id(group_id: str, limits: Limits) -> GroupId:
    """For offsets and descriptions."""
    if not group_id:
        raise InvalidGroupId("group_id is missing")
    return _check_group_id_length(group_id, limits)


def decode_member_id(member_id: str, limits: Limits) -> MemberId:
    if not member_id.strip():
        raise InvalidRequest("member_id is missing: make one up, best a UUID")
    check_id(member_id, "member_id", limits)
    return MemberId(member_id)


def check_id(text: str, field: str, limits: Limits) -> None:
    """Raises ``InvalidField`` for an id that is longer than the limit."""
    if len(text) > limits.id_bytes or len(text.encode()) > limits.id_bytes:
        raise InvalidField(field, f"{field} is longer than {limits.id_bytes} bytes")


def decode_racks(
    racks: Sequence[admin_pb2.ReplicaRacks], limits: Limits
) -> tuple[tuple[str, ...], ...]:
    """Of each partition. Raises ``InvalidField`` for a name that is longer than the limit."""
    for each in racks:
        for name in each.names:
            check_id(name, "replica_racks", limits)
    return tuple(tuple(each.names) for each in racks)


def decode_owned(
    topics: Sequence[types_pb2.TopicPartitions], image: TopicImage, limits: Limits
) -> tuple[TopicPartitions, ...]:
    """Partitions by topic id, each topic once, ascending. Raises for a name that is no topic."""
    merged: dict[TopicId, list[int]] = {}
    count = 0
    for entry in topics:
        # A slice of a repeated field is several times cheaper than iterating over it.
        partitions = entry.partitions[:]
        count += len(partitions)
        _check_partitions(count, limits)
        merged.setdefault(_decode_topic_id(entry, image), []).extend(partitions)
    owned = []
    for topic_id, partitions in merged.items():
        ascending = tuple(sorted(set(partitions)))
        if ascending and ascending[0] < 0:
            raise InvalidRequest(f"partition {ascending[0]} is below 0")
        owned.append(TopicPartitions(topic_id, ascending))
    return tuple(owned)


def _decode_topic_id(entry: types_pb2.TopicPartitions, image: TopicImage) -> TopicId:
    name, topic_id = _decode_topic(entry)
    if topic_id is not None:
        return topic_id
    topic = None if name is None else image.by_name.get(name)
    if topic is None:
        raise UnknownTopicOrPartition(f"there is no topic {name!r}")
    return topic.topic_id


def decode_offsets(
    topics: Sequence[types_pb2.TopicOffsets], limits: Limits
) -> tuple[TopicOffsets, ...]:
    """What a commit says, in its order. Raises ``InvalidRequest``."""
    count = sum(len(entry.partitions) for entry in topics)
    _check_partitions(count, limits)
    if count > COMMIT_PARTITIONS_MAX:
        raise InvalidRequest(
            f"a commit names at most {COMMIT_PARTITIONS_MAX} partitions: commit in parts"
        )
    decoded = []
    for entry in topics:
        name, topic_id = _decode_topic(entry)
        offsets = make_offset_columns(_decode_offset(offset) for offset in entry.partitions)
        decoded.append(TopicOffsets(name, topic_id, offsets))
    if not any(topic.partitions for topic in decoded):
        raise InvalidRequest("name at least one partition to commit")
    return tuple(decoded)


def _decode_offset(offset: types_pb2.PartitionOffset) -> OffsetRow:
    if offset.partition < 0:
        raise InvalidRequest(f"partition {offset.partition} is below 0")
    if offset.offset < 0:
        raise InvalidRequest(f"offset {offset.offset} is below 0")
    leader_epoch = offset.leader_epoch if offset.HasField("leader_epoch") else -1
    if leader_epoch < 0 and offset.HasField("leader_epoch"):
        raise InvalidRequest("leave leader_epoch out where none is known")
    return offset.partition, offset.offset, leader_epoch, offset.metadata


def _decode_topic(
    entry: types_pb2.TopicPartitions | types_pb2.TopicOffsets,
) -> tuple[TopicName | None, TopicId | None]:
    topic_id, name = entry.topic_id, entry.topic_name
    if topic_id and len(topic_id) != 16:
        raise InvalidRequest(f"a topic_id has 16 bytes, not {len(topic_id)}")
    if not topic_id and not name:
        raise InvalidRequest("name each topic by topic_id or by topic_name")
    if name:
        check_topic_name(name)
    return TopicName(name) if name else None, TopicId(topic_id) if topic_id else None


def _decode_indexes(partitions: Sequence[int]) -> tuple[int, ...]:
    if partitions and min(partitions) < 0:
        raise InvalidRequest(f"partition {min(partitions)} is below 0")
    return tuple(partitions[:])


def _decode_subscription(
    subscription: group_pb2.Subscription, limits: Limits
) -> tuple[tuple[TopicName, ...], str]:
    """All of it: without a pattern the member has none any more. The core bounds its length."""
    names = subscription.subscribed_topic_names
    if len(names) > limits.subscriptions:
        raise InvalidRequest(
            f"{len(names)} topics are subscribed to; at most {limits.subscriptions} are allowed"
        )
    _check_topic_names(names)
    topics = tuple(TopicName(name) for name in dict.fromkeys(names))
    return topics, subscription.subscribed_topic_regex


def _decode_optional(text: str, field: str, limits: Limits) -> str | Literal[Unchanged.UNCHANGED]:
    if not text:
        return UNCHANGED
    check_id(text, field, limits)
    return text


def _decode_instance_id(instance_id: str, limits: Limits) -> InstanceId | None:
    if not instance_id:
        return None
    check_id(instance_id, "instance_id", limits)
    return InstanceId(instance_id)


def _check_group_id_length(group_id: str, limits: Limits) -> GroupId:
    if len(group_id) > limits.group_id_bytes or len(group_id.encode()) > limits.group_id_bytes:
        raise InvalidGroupId(f"group_id is longer than {limits.group_id_bytes} bytes")
    return GroupId(group_id)


def _check_partitions(count: int, limits: Limits) -> None:
    if count > limits.partitions:
        raise InvalidRequest(
            f"{count} partitions in one request; at most {limits.partitions} are allowed"
        )


def _check_topic_names(names: Iterable[str]) -> None:
    for name in names:
        check_topic_name(name)


def check_topic_name(name: str) -> None:
    """Raises ``InvalidTopic`` for a length that no topic has; the core knows the other rules."""
    if not name or len(name) > TOPIC_NAME_MAX:
        raise InvalidTopic(f"a topic name has 1 to {TOPIC_NAME_MAX} characters, not {len(name)}")
