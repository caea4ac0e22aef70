"""What the wire can say wrong in a heartbeat before it is a command: rows C2 to C7.

These rows are about the sentinels of the wire (-1, null, ""), which end at this door. The order
is that of Kafka's ``throwIfConsumerGroupHeartbeatRequestIsInvalid``.
"""

from __future__ import annotations

from typing import Any, Final

from model.errors import InvalidRequest

LEAVE_EPOCH: Final = -1
STATIC_LEAVE_EPOCH: Final = -2
CLIENT_MADE_MEMBER_ID_VERSION: Final = 1
UNCHANGED_TIMEOUT: Final = -1
"""The rebalance timeout of a heartbeat that says none."""


def check_heartbeat(request: Any, version: int, client_id: str, id_max_bytes: int) -> None:
    """Raise ``InvalidRequest`` for a heartbeat that says too little or what cannot be."""
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
        raise InvalidRequest("MemberEpoch -2 is for static members: InstanceId is missing.")
    elif epoch < STATIC_LEAVE_EPOCH:
        raise InvalidRequest(f"MemberEpoch {epoch} is below -2, the lowest there is.")
    if epoch >= 0 and request.rebalance_timeout < UNCHANGED_TIMEOUT:
        raise InvalidRequest(f"RebalanceTimeoutMs {request.rebalance_timeout} is below 0.")


_BLANK: Final = "".join(map(chr, range(ord(" ") + 1)))
"""What Java's ``String.trim`` takes away: control characters too, and no blanks beyond ASCII."""


def check_not_blank(value: str | None, name: str) -> None:
    """Null passes; a text of nothing but blanks and control characters does not."""
    if value is not None and not value.strip(_BLANK):
        raise InvalidRequest(f"{name} must not be blank.")


def _check_lengths(request: Any, client_id: str, id_max_bytes: int) -> None:
    """What goes into records is bounded; the group id is bounded by the coordinator."""
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
    """Raise ``InvalidRequest`` for a text that is too long, by its name."""
    for name, value in named:
        if value is not None and len(value.encode()) > id_max_bytes:
            raise InvalidRequest(f"{name} is longer than {id_max_bytes} bytes.")


def _check_join(request: Any) -> None:
    if request.rebalance_timeout == -1:
        raise InvalidRequest("A join must have a RebalanceTimeoutMs.")
    if request.topic_partitions is None or request.topic_partitions:
        raise InvalidRequest("A join must have TopicPartitions that are empty, not null.")
    regex = getattr(request, "subscribed_topic_regex", None)
    if request.subscribed_topic_names is None and regex is None:
        raise InvalidRequest("A join must have SubscribedTopicNames or a SubscribedTopicRegex.")
