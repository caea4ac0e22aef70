"""Validates a ConsumerGroupHeartbeat request: rows C2 to C7 of ``tests/scenarios/README.md``.

These checks concern the sentinels of the wire (-1, null, ""), which commands do not have. Their
order is that of Kafka's ``throwIfConsumerGroupHeartbeatRequestIsInvalid``.
"""

from __future__ import annotations

from typing import Any, Final

from model.errors import InvalidRequest

LEAVE_EPOCH: Final = -1
STATIC_LEAVE_EPOCH: Final = -2
CLIENT_MADE_MEMBER_ID_VERSION: Final = 1
UNCHANGED_TIMEOUT: Final = -1
"""The rebalance timeout of a heartbeat that does not set it."""


def check_heartbeat(request: Any, version: int, client_id: str, id_max_bytes: int) -> None:
    """Raise ``InvalidRequest`` if a field is missing or invalid."""
    epoch = request.member_epoch
    if version >= CLIENT_MADE_MEMBER_ID_VERSION or epoch > 0 or epoch == LEAVE_EPOCH:
        check_not_blank(request.member_id, "MemberId")
    check_not_blank(request.group_id, "GroupId")
    check_not_blank(request.instance_id, "InstanceId")
    check_not_blank(request.rack_id, "RackId")
    _check_lengths(request, client_id, id_max_bytes)
    if epoch == 0:
        _check_join(request)
    elif epoch == STATIC_LEAVE_EPOCH and request.instance_id is None:
        raise InvalidRequest("InstanceId can't be null when MemberEpoch is -2.")
    elif epoch < STATIC_LEAVE_EPOCH:
        raise InvalidRequest(f"MemberEpoch is {epoch}, but must be greater than or equal to -2.")
    if epoch >= 0 and request.rebalance_timeout < UNCHANGED_TIMEOUT:
        raise InvalidRequest(f"RebalanceTimeoutMs {request.rebalance_timeout} is negative.")


_BLANK: Final = "".join(map(chr, range(ord(" ") + 1)))
"""What Java's ``String.trim`` strips: ASCII spaces and control characters, no Unicode blanks."""


def check_not_blank(value: str | None, name: str) -> None:
    """Raise ``InvalidRequest`` if ``value`` is blank by Java's ``String.trim``; null passes."""
    if value is not None and not value.strip(_BLANK):
        raise InvalidRequest(f"{name} can't be empty.")


def _check_lengths(request: Any, client_id: str, id_max_bytes: int) -> None:
    """Bound the fields that go into records; the coordinator bounds the group id."""
    check_sizes(
        id_max_bytes,
        ("ClientId", client_id),
        ("MemberId", request.member_id),
        ("InstanceId", request.instance_id),
        ("RackId", request.rack_id),
        ("ServerAssignor", request.server_assignor),
    )
    if any(len(name) > id_max_bytes for name in request.subscribed_topic_names or ()):
        raise InvalidRequest(f"A subscribed topic name is longer than {id_max_bytes} characters.")


def check_sizes(id_max_bytes: int, *named: tuple[str, str | None]) -> None:
    """Raise ``InvalidRequest`` for the first (name, value) longer than ``id_max_bytes``."""
    for name, value in named:
        if value is not None and len(value.encode()) > id_max_bytes:
            raise InvalidRequest(f"{name} is longer than {id_max_bytes} bytes.")


def _check_join(request: Any) -> None:
    if request.rebalance_timeout == -1:
        raise InvalidRequest("RebalanceTimeoutMs must be provided when (re-)joining.")
    if request.topic_partitions is None or request.topic_partitions:
        raise InvalidRequest("TopicPartitions must be empty and not null when (re-)joining.")
    regex = getattr(request, "subscribed_topic_regex", None)
    if request.subscribed_topic_names is None and regex is None:
        raise InvalidRequest(
            "SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
        )
