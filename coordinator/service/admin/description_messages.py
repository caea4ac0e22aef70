"""Encoding of groups, members, migration plans and topics as AdminService messages; pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from coordinator.core.state.classic.embedded_protocol import (
    PROTOCOL_TYPE,
    decode_assigned_partitions,
    decode_subscribed_topics,
)
from coordinator.runtime.loop.slices import Steps
from coordinator.service.wire.answer_slices import make_rows
from coordinator.service.wire.encode import encode_named
from model.ids import MemberId, TopicName
from model.responses.groups import (
    DescribedClassicGroup,
    DescribedClassicMember,
    DescribedConsumerGroup,
    DescribedMember,
    DescribedWait,
    ListedGroup,
)
from model.responses.migration import MigrationPlan, MigrationReason, PlannedMember
from model.topics import Topic, TopicImage
from muster.v1 import admin_pb2, types_pb2

_STATES: Final = {
    "Empty": admin_pb2.GROUP_STATE_EMPTY,
    "Assigning": admin_pb2.GROUP_STATE_ASSIGNING,
    "Reconciling": admin_pb2.GROUP_STATE_RECONCILING,
    "Stable": admin_pb2.GROUP_STATE_STABLE,
    "Dead": admin_pb2.GROUP_STATE_DEAD,
    "PreparingRebalance": admin_pb2.GROUP_STATE_PREPARING_REBALANCE,
    "CompletingRebalance": admin_pb2.GROUP_STATE_COMPLETING_REBALANCE,
    "NotReady": admin_pb2.GROUP_STATE_NOT_READY,
}
_STATE_NAMES: Final = {value: name for name, value in _STATES.items()}
_TYPES: Final = {
    "consumer": admin_pb2.GROUP_TYPE_CONSUMER,
    "classic": admin_pb2.GROUP_TYPE_CLASSIC,
    "share": admin_pb2.GROUP_TYPE_SHARE,
    "streams": admin_pb2.GROUP_TYPE_STREAMS,
}
_TYPE_NAMES: Final = {value: name for name, value in _TYPES.items()}
_MEMBER_STATES: Final = {
    "STABLE": admin_pb2.MEMBER_STATE_STABLE,
    "UNREVOKED_PARTITIONS": admin_pb2.MEMBER_STATE_UNREVOKED_PARTITIONS,
    "UNRELEASED_PARTITIONS": admin_pb2.MEMBER_STATE_UNRELEASED_PARTITIONS,
}


def decode_states(states: Iterable[admin_pb2.GroupState]) -> tuple[str, ...]:
    """Decode states to Kafka's names; a state unknown to this version matches no group."""
    return tuple(_STATE_NAMES.get(state, "Unknown") for state in states)


def decode_types(types: Iterable[admin_pb2.GroupType]) -> tuple[str, ...]:
    """Decode types to Kafka's names; a type unknown to this version matches no group."""
    return tuple(_TYPE_NAMES.get(kind, "unknown") for kind in types)


def encode_summary(group: ListedGroup) -> admin_pb2.GroupSummary:
    return admin_pb2.GroupSummary(
        group_id=group.group_id,
        group_type=_TYPES.get(group.group_type, admin_pb2.GROUP_TYPE_UNSPECIFIED),
        state=_STATES.get(group.state, admin_pb2.GROUP_STATE_UNSPECIFIED),
        protocol_type=group.protocol_type,
        members=group.members,
        group_epoch=group.group_epoch,
        frozen_since_ms=group.frozen_since_ms,
    )


class MemberEncoder:
    """Encodes the members of one group again and again, and of each only what has changed.

    Most members of a large group are as they were at the last look.
    """

    __slots__ = ("_before", "_known")

    def __init__(self) -> None:
        self._before: dict[MemberId, tuple[DescribedMember, admin_pb2.GroupMember]] = {}
        self._known = self._before

    def begin(self) -> None:
        """All members are encoded from now on; those that are not by the next time are gone."""
        self._before, self._known = self._known, {}

    def encode(self, member: DescribedMember) -> admin_pb2.GroupMember:
        known = self._before.get(member.member_id)
        if known is None or known[0] != member:
            known = member, encode_member(member)
        self._known[member.member_id] = known
        return known[1]


def encode_consumer_group(
    group: DescribedConsumerGroup, encoder: MemberEncoder | None = None
) -> Steps[admin_pb2.Group]:
    """Encode a group; ``encoder`` is the one with which it was encoded before."""
    encoder = encoder or MemberEncoder()
    encoder.begin()
    encoded = admin_pb2.Group(
        group_id=group.group_id,
        group_type=admin_pb2.GROUP_TYPE_CONSUMER,
        state=_STATES.get(group.state, admin_pb2.GROUP_STATE_UNSPECIFIED),
        protocol_type="consumer",
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.assignor_name,
        frozen_since_ms=0 if group.freeze is None else group.freeze.since_ms,
        frozen_by="" if group.freeze is None else group.freeze.principal,
    )
    members = sorted(group.members, key=lambda member: member.member_id)
    weigh = DescribedMember.compute_weight
    yield from make_rows(encoded.members.extend, encoder.encode, members, weigh)
    return encoded


def encode_classic_group(group: DescribedClassicGroup, image: TopicImage) -> Steps[admin_pb2.Group]:
    is_consumer = group.protocol_type == PROTOCOL_TYPE
    encoded = admin_pb2.Group(
        group_id=group.group_id,
        group_type=admin_pb2.GROUP_TYPE_CLASSIC,
        state=_STATES.get(group.state, admin_pb2.GROUP_STATE_UNSPECIFIED),
        protocol_type=group.protocol_type,
        group_epoch=group.generation,
        protocol=group.protocol,
    )

    def encode(member: DescribedClassicMember) -> admin_pb2.GroupMember:
        return encode_classic_member(member, is_consumer, image)

    members = sorted(group.members, key=lambda member: member.member_id)
    weigh = DescribedClassicMember.compute_weight
    yield from make_rows(encoded.members.extend, encode, members, weigh)
    return encoded


def encode_classic_member(
    member: DescribedClassicMember, is_consumer: bool, image: TopicImage
) -> admin_pb2.GroupMember:
    """Encode a classic member, with topics and partitions if its protocol type is consumer."""
    encoded = admin_pb2.GroupMember(
        member_id=member.member_id,
        instance_id=member.instance_id or "",
        client_id=member.client_id,
        client_host=member.client_host,
        classic_metadata=member.metadata,
        classic_assignment=member.assignment,
        protocol=admin_pb2.MEMBER_PROTOCOL_CLASSIC,
    )
    if is_consumer:
        encoded.subscribed_topic_names.extend(decode_subscribed_topics(member.metadata) or ())
        for given in decode_assigned_partitions(member.assignment) or ():
            topic = image.by_name.get(TopicName(given.topic))
            encoded.assignment.append(
                types_pb2.TopicPartitions(
                    topic_name=given.topic,
                    topic_id=b"" if topic is None else topic.topic_id,
                    partitions=given.partitions,
                )
            )
    return encoded


_VERDICTS: Final = {
    "READY": admin_pb2.MIGRATION_VERDICT_READY,
    "WARN": admin_pb2.MIGRATION_VERDICT_WARN,
    "BLOCKED": admin_pb2.MIGRATION_VERDICT_BLOCKED,
}


def encode_plan(plan: MigrationPlan) -> Steps[admin_pb2.PlanMigrationResponse]:
    encoded = admin_pb2.PlanMigrationResponse(
        group_id=plan.group_id,
        group_type=_TYPES.get(plan.group_type, admin_pb2.GROUP_TYPE_UNSPECIFIED),
        state=_STATES.get(plan.state, admin_pb2.GROUP_STATE_UNSPECIFIED),
        protocol_type=plan.protocol_type,
        protocol=plan.protocol_name,
        policy=plan.policy,
        verdict=_VERDICTS[plan.verdict],
        reasons=_encode_reasons(plan.reasons),
    )
    yield from make_rows(encoded.members.extend, _encode_planned_member, plan.members)
    return encoded


def _encode_planned_member(member: PlannedMember) -> admin_pb2.PlannedMember:
    return admin_pb2.PlannedMember(
        member_id=member.member_id,
        instance_id=member.instance_id or "",
        client_id=member.client_id,
        verdict=_VERDICTS[member.verdict],
        reasons=_encode_reasons(member.reasons),
        changes=[
            admin_pb2.ClientChange(name=each.name, value=each.value, reason=each.reason)
            for each in member.changes
        ],
    )


def _encode_reasons(reasons: Iterable[MigrationReason]) -> list[admin_pb2.MigrationReason]:
    return [
        admin_pb2.MigrationReason(
            kind=reason.kind, detail=reason.detail, is_blocking=reason.is_blocking
        )
        for reason in reasons
    ]


def encode_topic(topic: Topic) -> admin_pb2.Topic:
    return admin_pb2.Topic(
        topic_name=topic.name,
        topic_id=topic.topic_id,
        num_partitions=topic.partitions,
        replica_racks=[admin_pb2.ReplicaRacks(names=names) for names in topic.racks],
    )


def encode_member(member: DescribedMember) -> admin_pb2.GroupMember:
    return admin_pb2.GroupMember(
        member_id=member.member_id,
        instance_id=member.instance_id or "",
        rack_id=member.rack_id or "",
        member_epoch=member.member_epoch,
        state=_MEMBER_STATES.get(member.state, admin_pb2.MEMBER_STATE_UNSPECIFIED),
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.subscribed_topic_names,
        subscribed_topic_regex=member.subscribed_topic_regex or "",
        assignment=encode_named(member.assignment),
        pending_revocation=encode_named(member.pending_revocation),
        target_assignment=encode_named(member.target_assignment),
        protocol=(
            admin_pb2.MEMBER_PROTOCOL_CONSUMER
            if member.member_type
            else admin_pb2.MEMBER_PROTOCOL_CLASSIC
        ),
        waits=[_encode_wait(wait) for wait in member.waits],
    )


def _encode_wait(wait: DescribedWait) -> admin_pb2.MemberWait:
    return admin_pb2.MemberWait(
        owner_id=wait.owner_id,
        partitions=encode_named(wait.partitions),
        waited_ms=wait.waited_ms,
        left_ms=wait.left_ms,
    )
