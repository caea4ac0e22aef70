"""Decoding of ``muster.v1`` messages to commands; pure.

Fields that are missing, out of range or too large raise the ``GroupError`` that Kafka returns for
them. Checks that need the group's state are left to the core.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal

from coordinator.service.wire.error_statuses import InvalidField
from coordinator.service.wire.limits import Limits
from model.caller import Caller
from model.client_assignors import ClientAssignor
from model.commands.consumer import UNCHANGED, ConsumerGroupHeartbeat, ConsumerGroupLeave, Unchanged
from model.commands.offsets import (
    COMMIT_PARTITIONS_MAX,
    OffsetCommit,
    OffsetFetch,
    TopicOffsets,
    TopicToFetch,
)
from model.errors import InvalidGroupId, InvalidRequest, InvalidTopic, UnknownTopicOrPartition
from model.ids import GroupId, InstanceId, MemberId, TopicId, TopicName
from model.log.commit_records import OffsetRow, make_offset_columns
from model.log.records import TopicPartitions
from model.topics import TopicImage
from muster.v1 import admin_pb2, group_pb2, types_pb2

TOPIC_NAME_MAX: Final = 249
JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
STATIC_LEAVE_EPOCH: Final = -2
_JOIN_OWNS: Final = "a member that joins with epoch 0 must not own partitions"


def decode_join(
    caller: Caller,
    action: group_pb2.MemberAction,
    image: TopicImage,
    limits: Limits,
    client_assignors: tuple[ClientAssignor, ...] = (),
) -> ConsumerGroupHeartbeat:
    """Decode a Join to a full heartbeat; raises ``InvalidRequest`` and similar errors."""
    join = action.join
    if join.member_epoch < 0:
        raise InvalidRequest("the epoch of a Join must be 0, or that of the member it resumes")
    if join.rebalance_timeout_ms <= 0:
        raise InvalidRequest("rebalance_timeout_ms must be above 0")
    if not join.HasField("subscription"):
        raise InvalidRequest("a Join must have a subscription")
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
        client_assignors=client_assignors,
    )


def decode_heartbeat(
    caller: Caller,
    request: group_pb2.HeartbeatRequest,
    image: TopicImage,
    limits: Limits,
) -> ConsumerGroupHeartbeat | ConsumerGroupLeave:
    """Decode a unary heartbeat; raises ``InvalidRequest`` and similar errors."""
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
    """Raise ``InvalidRequest`` unless a joining member sets all that it must and owns nothing."""
    if not request.HasField("rebalance_timeout_ms"):
        raise InvalidRequest("a member that joins must set rebalance_timeout_ms")
    if not request.HasField("subscription"):
        raise InvalidRequest("a member that joins must set its subscription")
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
    """Decode a leave.

    Raises ``InvalidRequest`` unless the epoch is -1, or -2 with an instance id.
    """
    instance = _decode_instance_id(instance_id, limits)
    if member_epoch not in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
        raise InvalidRequest(f"member epoch {member_epoch} is below -2: leave with -1")
    if member_epoch == STATIC_LEAVE_EPOCH and instance is None:
        raise InvalidRequest("only a static member (with an instance_id) leaves with epoch -2")
    return ConsumerGroupLeave(caller, group_id, member_id, member_epoch, instance)


def decode_stream_commit(
    caller: Caller, action: group_pb2.MemberAction, limits: Limits
) -> OffsetCommit:
    """Decode a Commit on a session."""
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
    """Decode a unary commit."""
    epoch = request.member_epoch if request.HasField("member_epoch") else None
    if epoch is not None and epoch < 0:
        raise InvalidRequest("omit member_epoch to commit without being a member")
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
    """Decode an offset fetch."""
    topics: tuple[TopicToFetch, ...] | None = None
    if request.HasField("partitions"):
        entries = request.partitions.topics
        _check_partitions(sum(len(entry.partitions) for entry in entries), limits)
        topics = tuple(
            TopicToFetch(*decode_topic(entry), _decode_indexes(entry.partitions))
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
    """Decode the group id of a heartbeat; as in Kafka, a blank one is INVALID_REQUEST."""
    if not group_id.strip():
        raise InvalidRequest("group_id is missing")
    return _check_group_id_length(group_id, limits)


def decode_any_group_id(group_id: str, limits: Limits) -> GroupId:
    """Decode a group id that may be empty: old clients have committed offsets with that id."""
    return _check_group_id_length(group_id, limits)


def decode_offset_group_id(group_id: str, limits: Limits) -> GroupId:
    """Decode the group id of other requests; as in Kafka, an empty one is INVALID_GROUP_ID."""
    if not group_id:
        raise InvalidGroupId("group_id is missing")
    return _check_group_id_length(group_id, limits)


def decode_member_id(member_id: str, limits: Limits) -> MemberId:
    if not member_id.strip():
        raise InvalidRequest("member_id is missing: generate one, preferably a UUID")
    check_id(member_id, "member_id", limits)
    return MemberId(member_id)


def check_id(text: str, field: str, limits: Limits) -> None:
    """Raise ``InvalidField`` for an id that is longer than the limit."""
    if len(text) > limits.id_bytes or len(text.encode()) > limits.id_bytes:
        raise InvalidField(field, f"{field} is longer than {limits.id_bytes} bytes")


def decode_racks(
    racks: Sequence[admin_pb2.ReplicaRacks], limits: Limits
) -> tuple[tuple[str, ...], ...]:
    """Decode the racks of each partition; raises ``InvalidField`` for a name over the limit."""
    for each in racks:
        for name in each.names:
            check_id(name, "replica_racks", limits)
    return tuple(tuple(each.names) for each in racks)


def decode_owned(
    topics: Sequence[types_pb2.TopicPartitions], image: TopicImage, limits: Limits
) -> tuple[TopicPartitions, ...]:
    """Decode owned partitions, merged by topic id and sorted.

    Raises ``UnknownTopicOrPartition`` for an unknown topic name, and ``InvalidRequest``.
    """
    merged: dict[TopicId, list[int]] = {}
    count = 0
    for entry in topics:
        # Slicing a repeated field is several times cheaper than iterating over it.
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
    name, topic_id = decode_topic(entry)
    if topic_id is not None:
        return topic_id
    topic = None if name is None else image.by_name.get(name)
    if topic is None:
        raise UnknownTopicOrPartition(f"there is no topic {name!r}")
    return topic.topic_id


def decode_offsets(
    topics: Sequence[types_pb2.TopicOffsets], limits: Limits
) -> tuple[TopicOffsets, ...]:
    """Decode the offsets of a commit, in request order; raises ``InvalidRequest``."""
    count = sum(len(entry.partitions) for entry in topics)
    _check_partitions(count, limits)
    if count > COMMIT_PARTITIONS_MAX:
        raise InvalidRequest(
            f"a commit may have at most {COMMIT_PARTITIONS_MAX} partitions: split the commit"
        )
    decoded = []
    for entry in topics:
        name, topic_id = decode_topic(entry)
        rows = [_decode_offset(offset) for offset in entry.partitions]
        decoded.append(TopicOffsets(name, topic_id, make_offset_columns(rows)))
    if not any(topic.offsets.partitions for topic in decoded):
        raise InvalidRequest("a commit must have at least one partition")
    return tuple(decoded)


def _decode_offset(offset: types_pb2.PartitionOffset) -> OffsetRow:
    if offset.partition < 0:
        raise InvalidRequest(f"partition {offset.partition} is below 0")
    if offset.offset < 0:
        raise InvalidRequest(f"offset {offset.offset} is below 0")
    leader_epoch = offset.leader_epoch if offset.HasField("leader_epoch") else -1
    if leader_epoch < 0 and offset.HasField("leader_epoch"):
        raise InvalidRequest("omit leader_epoch if it is unknown")
    return offset.partition, offset.offset, leader_epoch, offset.metadata


def decode_topic(
    entry: types_pb2.TopicPartitions | types_pb2.TopicOffsets | group_pb2.TopicEndOffsets,
) -> tuple[TopicName | None, TopicId | None]:
    """The name and the id of a topic, at least one. Raises ``InvalidRequest``, ``InvalidTopic``."""
    topic_id, name = entry.topic_id, entry.topic_name
    if topic_id and len(topic_id) != 16:
        raise InvalidRequest(f"a topic_id has 16 bytes, not {len(topic_id)}")
    if not topic_id and not name:
        raise InvalidRequest("set topic_id or topic_name for each topic")
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
    """Decode a subscription, which is complete: an unset regular expression removes the old one.

    The core limits the length of the regular expression.
    """
    names = subscription.subscribed_topic_names
    if len(names) > limits.subscriptions:
        raise InvalidRequest(
            f"{len(names)} subscribed topics; at most {limits.subscriptions} are allowed"
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
    """Raise ``InvalidTopic`` for an invalid length; the core checks the other rules."""
    if not name or len(name) > TOPIC_NAME_MAX:
        raise InvalidTopic(f"a topic name has 1 to {TOPIC_NAME_MAX} characters, not {len(name)}")
