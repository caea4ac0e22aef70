"""Members of the classic protocol within consumer groups: what they say, in the other's words.

Pure translation, of Kafka's ``classicGroupJoinToConsumerGroup`` and what it calls. A classic member
of a consumer group has ``classic_member_metadata``; its generation is its member epoch. A JoinGroup
is a heartbeat that says everything, with what the embedded subscription says that the member owns;
a member that stops for each rebalance owns nothing then, one that does not (KIP-429) says what.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from coordinator.core.client_assignors.declaration import compute_user_data
from coordinator.core.state.consumer_group import NOTHING_SAID, ConsumerGroup
from coordinator.core.state.consumer_member import JOIN_EPOCH, Member
from coordinator.core.state.embedded_protocol import (
    PROTOCOL_TYPE,
    decode_subscription,
    encode_assignment,
)
from model.commands import ConsumerGroupHeartbeat, JoinGroup
from model.errors import InconsistentGroupProtocol
from model.ids import MemberId, TopicName
from model.log.records import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMemberMetadataValue,
    MemberState,
    TopicPartitions,
)
from model.responses import ConsumerGroupHeartbeatResponse, JoinGroupResponse, SyncGroupResponse
from model.topics import TopicImage
from muster.assignors import embedded

# ------------------------------------------------------------------------------- what members say


def compute_subscription(command: JoinGroup) -> embedded.Subscription:
    """What the member says for the protocol that it prefers, which is the one that it is told.

    Raises INCONSISTENT_GROUP_PROTOCOL where nobody can read it.
    """
    subscription = decode_subscription(command.protocols[0].metadata)
    if subscription is None:
        raise InconsistentGroupProtocol(
            f"The metadata of protocol {command.protocols[0].name} is no subscription of the "
            "embedded consumer protocol."
        )
    return subscription


def compute_topic_names(subscription: embedded.Subscription) -> tuple[TopicName, ...]:
    """What the member subscribes to, as the record of a member has it: each once, in order."""
    return tuple(map(TopicName, sorted(set(subscription.topics))))


def compute_metadata(
    known: ConsumerGroupMemberMetadataValue | None,
    command: JoinGroup,
    subscription: embedded.Subscription,
) -> ConsumerGroupMemberMetadataValue:
    """The metadata of the member from now on; ``known`` is what it, or its instance, has."""
    old = known or NOTHING_SAID
    classic = ClassicMemberMetadata(
        command.session_timeout_ms,
        tuple(ClassicProtocol(each.name, each.metadata) for each in command.protocols),
    )
    return replace(
        old,
        instance_id=old.instance_id if command.instance_id is None else command.instance_id,
        rack_id=old.rack_id if subscription.rack is None else subscription.rack,
        client_id=command.caller.client_id,
        client_host=command.caller.client_host,
        subscribed_topic_names=compute_topic_names(subscription),
        subscribed_topic_regex="",
        rebalance_timeout_ms=command.rebalance_timeout_ms,
        classic_member_metadata=classic,
    )


def compute_heartbeat(
    command: JoinGroup,
    member_id: MemberId,
    metadata: ConsumerGroupMemberMetadataValue,
    owned: tuple[TopicPartitions, ...] | None,
) -> ConsumerGroupHeartbeat:
    """The heartbeat that says the same as a JoinGroup."""
    return ConsumerGroupHeartbeat(
        command.caller,
        command.group_id,
        member_id,
        JOIN_EPOCH,
        rebalance_timeout_ms=metadata.rebalance_timeout_ms,
        subscribed_topic_names=metadata.subscribed_topic_names,
        owned=owned,
        instance_id=metadata.instance_id,
    )


def compute_owned(
    subscription: embedded.Subscription, member: Member | None, image: TopicImage
) -> tuple[TopicPartitions, ...] | None:
    """What a member says that it owns; ``None`` where that may be what it owned before.

    A subscription of the generation before the member's was made before the answer to the last
    JoinGroup: that answer was lost, or this request was late, and then the member may own more
    than it says here. It is asked once more, and says it with its generation.
    """
    if (
        member is not None
        and subscription.generation > 0
        and subscription.generation == member.previous_member_epoch < member.member_epoch
    ):
        return None
    return tuple(
        TopicPartitions(topic.topic_id, tuple(sorted(set(each.partitions))))
        for each in subscription.owned_partitions
        if (topic := image.by_name.get(TopicName(each.topic))) is not None
    )


def supports_protocols(group: ConsumerGroup, command: JoinGroup) -> bool:
    """Row T1: whether all classic members can follow one of the protocols, be it never used."""
    if command.protocol_type != PROTOCOL_TYPE:
        return False
    counts, size = group.classic_protocols, group.classic_member_count
    return any(counts.get(protocol.name, 0) == size for protocol in command.protocols)


# -------------------------------------------------------------------------- what members are told


def get_protocol_name(classic: ClassicMemberMetadata) -> str | None:
    """The protocol that a member is told: its own first one. Only a damaged log has none."""
    protocols = classic.supported_protocols
    return protocols[0].name if protocols else None


def get_protocol(classic: ClassicMemberMetadata, name: str | None) -> ClassicProtocol | None:
    """The member's protocol of that name, its first one where none is named.

    A member that joined when the group was a classic one was told any of its protocols.
    """
    for protocol in classic.supported_protocols:
        if name is None or protocol.name == name:
            return protocol
    return None


def compute_join_answer(
    metadata: ConsumerGroupMemberMetadataValue, response: ConsumerGroupHeartbeatResponse
) -> JoinGroupResponse:
    """Row T3: nobody leads, so that nobody computes an assignment."""
    assert metadata.classic_member_metadata is not None, "it joined by JoinGroup"
    return JoinGroupResponse(
        response.member_id,
        response.member_epoch,
        PROTOCOL_TYPE,
        get_protocol_name(metadata.classic_member_metadata),
        leader=None,
    )


def compute_sync_answer(
    group: ConsumerGroup, member: Member, protocol: ClassicProtocol, image: TopicImage
) -> SyncGroupResponse:
    """Row T7: what is assigned to the member, without what it has to give up.

    With the bytes that a client-side assignor has for it.
    """
    assigned = _assigned_partitions(group, member, image)
    assignment = encode_assignment(assigned, protocol.metadata, compute_user_data(group, member))
    awaits = member.state is MemberState.UNRELEASED_PARTITIONS and not len(member.assigned)
    return SyncGroupResponse(PROTOCOL_TYPE, protocol.name, assignment, awaits)


def _assigned_partitions(
    group: ConsumerGroup, member: Member, image: TopicImage
) -> Iterator[embedded.TopicPartitions]:
    for each in group.numbers.topic_partitions(member.assigned):
        topic = image.by_id.get(each.topic_id)
        if topic is not None:
            yield embedded.TopicPartitions(topic.name, each.partitions)
