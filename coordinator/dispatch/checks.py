"""Validation of commands before they reach a handler."""

from __future__ import annotations

from coordinator.core.state.shard import Shard
from model.commands.consumer import ConsumerGroupHeartbeat
from model.errors import InvalidGroupId, InvalidRequest, UnsupportedVersion
from model.ids import GroupId, MemberId

MEMBER_ID_MAX_BYTES = 32_767
"""The maximum size of a string in a record key."""


def check_consumer_protocol(shard: Shard) -> None:
    """Raise ``UnsupportedVersion`` unless the consumer protocol is enabled.

    ``group.coordinator.rebalance.protocols`` decides, as in Kafka's
    ``KafkaApis.isConsumerGroupProtocolEnabled``.
    """
    if "consumer" not in shard.settings.group_coordinator_rebalance_protocols:
        raise UnsupportedVersion("The consumer group protocol is disabled on this server.")


def check_group_id(shard: Shard, group_id: GroupId) -> None:
    """Raise ``InvalidRequest`` for an empty group id, and ``InvalidGroupId`` for a long one."""
    if not group_id:
        raise InvalidRequest("GroupId can't be empty.")
    check_group_id_size(shard, group_id)


def check_group_id_size(shard: Shard, group_id: GroupId) -> None:
    """Raise ``InvalidGroupId`` for a group id that is too long for a record key."""
    limit = shard.settings.group_id_max_bytes
    if _is_longer(group_id, limit):
        raise InvalidGroupId(f"The group id is longer than {limit} bytes.")


def _is_longer(text: str, limit: int) -> bool:
    """Whether the text exceeds the limit in bytes; encodes only text that might."""
    return 4 * len(text) > limit and len(text.encode()) > limit


def check_member_id_size(member_id: MemberId) -> None:
    """Raise ``InvalidRequest`` for a member id that is too long for a record key."""
    if _is_longer(member_id, MEMBER_ID_MAX_BYTES):
        raise InvalidRequest(f"The member id is longer than {MEMBER_ID_MAX_BYTES} bytes.")


def check_member_request(shard: Shard, command: ConsumerGroupHeartbeat) -> None:
    """Raise ``InvalidRequest`` for invalid fields, apart from the checks that listeners make."""
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
