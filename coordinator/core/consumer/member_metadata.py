"""The metadata of a member of a consumer group, as updated by a heartbeat."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, TypeVar

from coordinator.core.state.consumer.consumer_group import NOTHING_SAID
from coordinator.core.state.consumer.consumer_member import Member
from model.commands.consumer import UNCHANGED, ConsumerGroupHeartbeat, Unchanged
from model.log.records import ConsumerGroupMemberMetadataValue

T = TypeVar("T")


def _or(value: T | Literal[Unchanged.UNCHANGED], old: T) -> T:
    return old if value is UNCHANGED else value


def compute_updated_metadata(
    member: Member | None, command: ConsumerGroupHeartbeat
) -> ConsumerGroupMemberMetadataValue:
    """The member's metadata after the heartbeat; the same object if nothing changed."""
    old = member.metadata if member is not None and member.metadata is not None else NOTHING_SAID
    names = command.subscribed_topic_names
    if command.by_server or (
        names is UNCHANGED
        and command.rebalance_timeout_ms is UNCHANGED
        and command.rack_id is UNCHANGED
        and command.server_assignor is UNCHANGED
        and command.subscribed_topic_regex is UNCHANGED
        and command.instance_id in (None, old.instance_id)
        and old.client_id == command.caller.client_id
        and old.client_host == command.caller.client_host
        and old.classic_member_metadata is None
    ):
        return old
    return replace(
        old,
        instance_id=old.instance_id if command.instance_id is None else command.instance_id,
        rack_id=_or(command.rack_id, old.rack_id),
        client_id=command.caller.client_id,
        client_host=command.caller.client_host,
        subscribed_topic_names=(
            old.subscribed_topic_names if names is UNCHANGED else tuple(sorted(set(names)))
        ),
        subscribed_topic_regex=_or(command.subscribed_topic_regex, old.subscribed_topic_regex),
        rebalance_timeout_ms=_or(command.rebalance_timeout_ms, old.rebalance_timeout_ms),
        server_assignor=_or(command.server_assignor, old.server_assignor),
        classic_member_metadata=None,
    )
