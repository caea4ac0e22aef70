"""Decides what becomes of a group's request: it passes, is answered here, or is split."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from model.errors import ErrorCode
from model.places import Place
from upstream.relay.frames.exchanges import Exchange
from upstream.relay.frames.group_frames import (
    CONSUMER_GROUP_DESCRIBE,
    CONSUMER_GROUP_HEARTBEAT,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    OFFSET_COMMIT,
    SYNC_GROUP,
    GroupFrame,
    join_as_new_member,
    keep_groups,
    make_answer,
)
from upstream.relay.frames.rights_probes import SHOWS_RIGHTS, make_rights_probe, read_probe
from upstream.relay.groups.seen_members import SeenMember
from upstream.relay.relay_places import CONSUMER_PROTOCOL, JOINED, RelayPlaces, is_here
from upstream.relay.relaying import Relaying

_WITHOUT_REJOIN: Final = (OFFSET_COMMIT, HEARTBEAT, SYNC_GROUP)
_COMMIT_OF_KAFKAJS: Final = 5
"""The version of OffsetCommit that it has, and hardly any other client."""


@dataclass(frozen=True, slots=True)
class Passed:
    """The frame goes to the broker."""

    exchange: Exchange
    frame: bytes


@dataclass(frozen=True, slots=True)
class Answered:
    """The client gets the frame."""

    exchange: Exchange
    frame: bytes


def decide(request: GroupFrame, relaying: Relaying, now: float) -> Passed | Answered:
    """Decide about a request of ``GROUP_KEYS``, and tell what it shows."""
    head = request.head
    exchange = Exchange(head.key, head.version, head.correlation_id)
    if head.key in (CONSUMER_GROUP_HEARTBEAT, CONSUMER_GROUP_DESCRIBE) and (
        head.key in relaying.rewriting.added
    ):
        return _look_at_consumer_protocol(request, exchange, relaying)
    group_ids = request.group_ids
    here = tuple(name for name in group_ids if is_here(relaying.places, name))
    if here and _is_served_there(request, relaying.places):
        return Passed(exchange, request.frame)
    if len(here) == len(group_ids) and here:
        return Answered(exchange, make_answer(request, lambda _: ErrorCode.NOT_COORDINATOR))
    if here:
        exchange.request, exchange.refused = replace(request, frame=b""), here
        return Passed(exchange, keep_groups(request, set(group_ids) - set(here)))
    if head.key in _WITHOUT_REJOIN and _was_here(request, relaying.places):
        # UNKNOWN_MEMBER_ID would make a cooperative member lose its partitions, and forget the id
        # that the cluster gives it meanwhile, for which the others then wait a session timeout.
        return Answered(exchange, make_answer(request, lambda _: ErrorCode.REBALANCE_IN_PROGRESS))
    if head.key == JOIN_GROUP and relaying.places.may_take(request.body.group_id, JOINED):
        return _ask_for_rights(request, exchange, JOINED)
    if head.key in (JOIN_GROUP, SYNC_GROUP, HEARTBEAT, LEAVE_GROUP):
        return _look_at_member(request, exchange, relaying, now)
    return Passed(exchange, request.frame)


def _is_served_there(request: GroupFrame, places: RelayPlaces) -> bool:
    """Whether it is a commit with which a member may go on until its next heartbeat.

    A refused commit brings other clients here at once. kafkajs repeats it at the same broker, for
    ten seconds in which it does nothing else; and the cluster still has the member.
    """
    head, body = request.head, request.body
    if head.key != OFFSET_COMMIT or head.version != _COMMIT_OF_KAFKAJS:
        return False
    return places.awaits_member(body.group_id, body.member_id)


def _was_here(request: GroupFrame, places: RelayPlaces) -> bool:
    """Whether the member goes back to the cluster, which does not know its id."""
    body = request.body
    return bool(body.member_id) and places.meets_former_member(body.group_id, body.member_id)


def _look_at_consumer_protocol(
    request: GroupFrame, exchange: Exchange, relaying: Relaying
) -> Passed | Answered:
    """The cluster has no consumer protocol: its groups are classic, and members come to us."""
    places = relaying.places
    if request.head.key == CONSUMER_GROUP_HEARTBEAT:
        group_id = request.body.group_id
        if places.find_place(group_id) is Place.UPSTREAM and places.may_take(
            group_id, CONSUMER_PROTOCOL
        ):
            return _ask_for_rights(request, exchange, CONSUMER_PROTOCOL)
        return Answered(exchange, make_answer(request, lambda _: ErrorCode.NOT_COORDINATOR))
    answer = make_answer(
        request,
        lambda group_id: (
            ErrorCode.NOT_COORDINATOR if is_here(places, group_id) else ErrorCode.GROUP_ID_NOT_FOUND
        ),
    )
    return Answered(exchange, answer)


def _ask_for_rights(request: GroupFrame, exchange: Exchange, cause: str) -> Passed:
    """Nobody is known here: the broker says whether the client may read the group."""
    exchange.request, exchange.cause = replace(request, frame=b""), cause
    return Passed(exchange, make_rights_probe(request))


def answer_probe(exchange: Exchange, frame: bytes, relaying: Relaying) -> bytes:
    """The answer to a member whose group is taken if the broker's answer shows its rights.

    Raises ``CannotRewrite``.
    """
    request = exchange.request
    assert request is not None
    code = read_probe(frame)
    if code in SHOWS_RIGHTS:
        relaying.places.asks_to_take(request.body.group_id, exchange.cause)
        code = ErrorCode.NOT_COORDINATOR
    return make_answer(request, lambda _: code)


def _look_at_member(
    request: GroupFrame, exchange: Exchange, relaying: Relaying, now: float
) -> Passed | Answered:
    """Note whose request it is."""
    body, key = request.body, request.head.key
    passed = Passed(exchange, request.frame)
    exchange.group_id, exchange.client_id = body.group_id, request.client_id
    if key == LEAVE_GROUP:
        rows = getattr(body, "members", None)
        exchange.left = (body.member_id,) if rows is None else tuple(x.member_id for x in rows)
        return passed
    exchange.member_id = body.member_id
    if key in (JOIN_GROUP, SYNC_GROUP):
        exchange.waits = make_answer(request, lambda _: ErrorCode.NOT_COORDINATOR)
    if key == SYNC_GROUP and body.assignments:
        relaying.members.note_leader(body.group_id, body.member_id, body.generation_id)
    if key != JOIN_GROUP:
        return passed
    places = relaying.places
    if _was_here(request, places):
        # No refusal would do: after UNKNOWN_MEMBER_ID some clients pause for seconds, and after
        # MEMBER_ID_REQUIRED without an id kafkajs ends. So the cluster is asked for an id, which
        # all take.
        exchange.member_id = ""
        return Passed(exchange, join_as_new_member(request))
    places.note_joined(body.group_id, body.member_id)
    if body.member_id:
        seen = exchange.joining = SeenMember(
            request.client_id,
            body.session_timeout,
            getattr(body, "rebalance_timeout", body.session_timeout),
            getattr(body, "group_instance_id", None),
            now,
            is_joining=True,
        )
        exchange.is_new_member = relaying.members.note_join(body.group_id, body.member_id, seen)
    return passed
