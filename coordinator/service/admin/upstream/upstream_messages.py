"""The cluster that the server stands in front of, as ``muster.v1`` messages."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from types import MappingProxyType
from typing import Final

from coordinator.core.subscriptions.regex_matching import check_regex
from coordinator.service.admin.upstream.upstream_administration import (
    GroupMove,
    UpstreamDescription,
    UpstreamGroup,
)
from coordinator.service.wire.decode import decode_offset_group_id
from coordinator.service.wire.error_statuses import InvalidField, encode_group_error
from coordinator.service.wire.limits import Limits
from model.errors import GroupError, InvalidRegularExpression
from model.ids import GroupId
from model.places import Place
from muster.v1 import upstream_pb2

GROUPS_MAX: Final = 1_000
"""How many groups a call may name."""
STRANGERS_SHOWN_MAX: Final = 100
PATTERN_MAX_BYTES: Final = 1_000

PLACES: Final = MappingProxyType(
    {
        Place.UPSTREAM: upstream_pb2.GROUP_PLACE_UPSTREAM,
        Place.TAKING: upstream_pb2.GROUP_PLACE_TAKING,
        Place.MUSTER: upstream_pb2.GROUP_PLACE_MUSTER,
        Place.RETURNING: upstream_pb2.GROUP_PLACE_RETURNING,
    }
)
_PLACE_OF: Final = {number: place for place, number in PLACES.items()}


def decode_places(numbers: Iterable[int]) -> frozenset[Place]:
    """The places that a listing is limited to; raises ``InvalidField``."""
    found = set()
    for number in numbers:
        if number not in _PLACE_OF:
            raise InvalidField("places", f"{number} is no place of a group")
        found.add(_PLACE_OF[number])  # type: ignore[index]  # a number, as on the wire
    return frozenset(found)


def decode_group_ids(texts: Iterable[str], limits: Limits) -> tuple[GroupId, ...]:
    """The groups that a call names, each once; raises ``InvalidField`` and ``InvalidGroupId``."""
    named = list(islice(dict.fromkeys(texts), GROUPS_MAX + 1))
    if len(named) > GROUPS_MAX:
        raise InvalidField("group_ids", f"name at most {GROUPS_MAX} groups in a call")
    return tuple(decode_offset_group_id(text, limits) for text in named)


def check_pattern(pattern: str) -> None:
    """Raise ``InvalidField`` unless it is a regular expression that is not too large."""
    try:
        check_regex(pattern, PATTERN_MAX_BYTES)
    except InvalidRegularExpression as error:
        said = error.message.replace("SubscribedTopicRegex", "pattern")
        raise InvalidField("pattern", said) from None


def encode_description(found: UpstreamDescription) -> upstream_pb2.GetUpstreamResponse:
    """The cluster."""
    return upstream_pb2.GetUpstreamResponse(
        cluster_id=found.cluster_id,
        brokers=[
            upstream_pb2.UpstreamBroker(
                node_id=broker.node_id,
                address=broker.address,
                rack=broker.rack,
                relay_address=broker.relay_address,
            )
            for broker in sorted(found.brokers, key=lambda broker: broker.node_id)
        ],
        reachable=found.is_reachable,
        fault=found.fault,
        release=found.release,
        features=dict(found.features),
        has_consumer_protocol=found.has_consumer_protocol,
        has_topic_ids=found.has_topic_ids,
        identity=found.identity,
        offsets_store=found.offsets_store,
        node_address=found.node_address,
        takeover_groups=found.takeover_groups,
    )


def encode_group(group: UpstreamGroup) -> upstream_pb2.UpstreamGroup:
    """How a group stands."""
    return upstream_pb2.UpstreamGroup(
        group_id=group.group_id,
        place=PLACES[group.place],
        since_ms=group.since_ms,
        step=group.step,
        sentinel_member_id=group.sentinel_member_id,
        sentinel_generation=group.sentinel_generation,
        members_here=group.members_here,
        members_there=group.members_there,
        strangers=[
            upstream_pb2.Stranger(
                member_id=each.member_id, client_id=each.client_id, host=each.host
            )
            for each in group.strangers[:STRANGERS_SHOWN_MAX]
        ],
        cause=group.cause,
        error=group.error,
        protocol_type=group.protocol_type,
    )


def encode_move(move: GroupMove, groups: int) -> upstream_pb2.GroupReport:
    """What became of one of ``groups`` groups."""
    report = upstream_pb2.GroupReport(group=encode_group(move.group), groups=groups)
    if move.error is not None:
        report.error.CopyFrom(encode_group_error(move.error))
    return report


def encode_failure(group_id: GroupId, error: GroupError, groups: int) -> upstream_pb2.GroupReport:
    """A group of which nothing is known but that it was not moved."""
    return upstream_pb2.GroupReport(
        group=upstream_pb2.UpstreamGroup(group_id=group_id),
        error=encode_group_error(error),
        groups=groups,
    )
