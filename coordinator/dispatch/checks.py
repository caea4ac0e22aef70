"""Checks of commands before a handler sees them."""

from __future__ import annotations

from coordinator.core.state.shard import Shard
from model.commands import ConsumerGroupHeartbeat
from model.errors import InvalidGroupId, InvalidRequest, UnsupportedVersion
from model.ids import GroupId, MemberId

MEMBER_ID_MAX_BYTES = 32_767
"""What a string in the key of a record may have."""


def check_consumer_protocol(shard: Shard) -> None:
    """Row C1: ``group.coordinator.rebalance.protocols`` says whether it is spoken here.

    Kafka: ``KafkaApis.isConsumerGroupProtocolEnabled``.
    """
    if "consumer" not in shard.settings.group_coordinator_rebalance_protocols:
        raise UnsupportedVersion("The consumer group protocol is switched off on this server.")


def check_group_id(shard: Shard, group_id: GroupId) -> None:
    """Row C3, and a bound on what becomes a key of the log."""
    if not group_id:
        raise InvalidRequest("GroupId can't be empty.")
    check_group_id_size(shard, group_id)


def check_group_id_size(shard: Shard, group_id: GroupId) -> None:
    """A group id must fit into the key of a record."""
    limit = shard.settings.group_id_max_bytes
    if _is_longer(group_id, limit):
        raise InvalidGroupId(f"The group id is longer than {limit} bytes.")


def _is_longer(text: str, limit: int) -> bool:
    """Whether the text has more bytes, which are at most four for each character."""
    return 4 * len(text) > limit and len(text.encode()) > limit


def check_member_id_size(member_id: MemberId) -> None:
    """A member id must fit into the key of a record."""
    if _is_longer(member_id, MEMBER_ID_MAX_BYTES):
        raise InvalidRequest(f"The member id is longer than {MEMBER_ID_MAX_BYTES} bytes.")


def check_member_request(shard: Shard, command: ConsumerGroupHeartbeat) -> None:
    """Rows C2 to C6 as far as no door has to know of a wire for them."""
    if not command.member_id:
        raise InvalidRequest("MemberId can't be empty.")
    check_member_id_size(command.member_id)
    if command.member_epoch < 0:
        raise InvalidRequest("MemberEpoch is invalid.")
    names = command.subscribed_topic_names
    if isinstance(names, tuple) and len(names) > shard.settings.group_subscriptions_max:
        raise InvalidRequest(
            f"A member cannot subscribe to more than {shard.settings.group_subscriptions_max} "
            "topics."
        )
