"""Classic members of consumer groups: mapping of their requests and responses.

It follows Kafka's ``classicGroupJoinToConsumerGroup`` and the methods that it calls. A classic
member of a consumer group has ``classic_member_metadata``; its generation is its member epoch. A
JoinGroup maps to a full heartbeat whose owned partitions come from the embedded subscription: none
for an eager member, the partitions that it keeps for a cooperative one (KIP-429).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from coordinator.core.client_assignors.declaration import compute_user_data
from coordinator.core.state.classic.embedded_protocol import (
    PROTOCOL_TYPE,
    decode_subscription,
    encode_assignment,
)
from coordinator.core.state.consumer.consumer_group import NOTHING_SAID, ConsumerGroup
from coordinator.core.state.consumer.consumer_member import JOIN_EPOCH, Member
from model.commands.classic import JoinGroup
from model.commands.consumer import ConsumerGroupHeartbeat
from model.errors import InconsistentGroupProtocol
from model.ids import MemberId, TopicName
from model.log.records import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMemberMetadataValue,
    MemberState,
    TopicPartitions,
)
from model.responses.classic import JoinGroupResponse, SyncGroupResponse
from model.responses.consumer import ConsumerGroupHeartbeatResponse
from model.topics import TopicImage
from muster.assignors import embedded

# -------------------------------------------------------------------------------------- requests


def compute_subscription(command: JoinGroup) -> embedded.Subscription:
    """The member's subscription for its preferred protocol, which responses name as the group's.

    Raises ``InconsistentGroupProtocol`` for metadata that is not a valid subscription.
    """
    subscription = decode_subscription(command.protocols[0].metadata)
    if subscription is None:
        raise InconsistentGroupProtocol(
            f"The metadata of protocol {command.protocols[0].name} is not a valid subscription of "
            "the embedded consumer protocol."
        )
    return subscription


def compute_topic_names(subscription: embedded.Subscription) -> tuple[TopicName, ...]:
    """The topics that the member subscribes to, as its record has them: distinct and sorted."""
    return tuple(map(TopicName, sorted(set(subscription.topics))))


def compute_metadata(
    known: ConsumerGroupMemberMetadataValue | None,
    command: JoinGroup,
    subscription: embedded.Subscription,
) -> ConsumerGroupMemberMetadataValue:
    """The member's new metadata; ``known`` is the old one, of the member or its predecessor."""
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
    """The heartbeat that is equivalent to a JoinGroup."""
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
    """The partitions that the member reports as owned; ``None`` if the report may be outdated.

    A subscription with the member's previous generation was built before the response to its last
    JoinGroup: that response was lost, or this request is late, and the member may own more by now.
    It has to rejoin once more, and then reports with its current generation.
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
    """Whether all classic members support one of the protocols (row T1).

    As in Kafka this is checked although the server assigns, whatever the protocol is.
    """
    if command.protocol_type != PROTOCOL_TYPE:
        return False
    counts, size = group.classic_protocols, group.classic_member_count
    return any(counts.get(protocol.name, 0) == size for protocol in command.protocols)


# ------------------------------------------------------------------------------------- responses


def get_protocol_name(classic: ClassicMemberMetadata) -> str | None:
    """The protocol name in responses: the member's first. Only a damaged log has none."""
    protocols = classic.supported_protocols
    return protocols[0].name if protocols else None


def get_protocol(classic: ClassicMemberMetadata, name: str | None) -> ClassicProtocol | None:
    """The member's protocol with that name, or its first one for ``None``.

    A member that joined before the upgrade may have been sent any of its protocols.
    """
    for protocol in classic.supported_protocols:
        if name is None or protocol.name == name:
            return protocol
    return None


def compute_join_answer(
    metadata: ConsumerGroupMemberMetadataValue, response: ConsumerGroupHeartbeatResponse
) -> JoinGroupResponse:
    """The JoinGroup response, without a leader: no client computes an assignment (row T3)."""
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
    """The SyncGroup response: the assigned partitions, without those pending revocation (row T7).

    It has the user data that a client-side assignor provides for the member.
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
