"""``muster.v1.HistoryService``: how groups came to be what they are."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

import grpc.aio

from coordinator.runtime.as_of.reader_places import compute_holder
from coordinator.runtime.loop.slices import Steps
from coordinator.service.calls.grpc_caller import compute_caller
from coordinator.service.calls.guard import Guard
from coordinator.service.calls.past_positions import decode_as_of, encode_position
from coordinator.service.calls.services import Services
from coordinator.service.wire.answer_slices import SLICE, make_rows, run_steps
from coordinator.service.wire.decode import decode_any_group_id
from coordinator.service.wire.error_statuses import InvalidField
from coordinator.service.wire.paging import compute_page, compute_page_token
from model.access.acls import Operation
from model.errors import GroupIdNotFound, UnsupportedVersion
from model.past.ownerships import Lane, Moment, OwnershipQuestion, OwningMember, Span
from muster.v1 import history_pb2, history_pb2_grpc

SPANS_MAX: Final = 20_000
"""The most changes of owners, and the most moments, that one response tells of."""

_Context: TypeAlias = grpc.aio.ServicerContext[
    history_pb2.ListOwnershipsRequest, history_pb2.ListOwnershipsResponse
]


class HistoryService(history_pb2_grpc.HistoryServiceServicer):
    """Tells the past of groups.

    See ``coordinator.service.wire.error_statuses`` for the statuses of errors.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._access = services.access

    async def ListOwnerships(  # noqa: N802
        self, request: history_pb2.ListOwnershipsRequest, context: _Context
    ) -> history_pb2.ListOwnershipsResponse:
        async with Guard(context, group_id=request.group_id):
            services = self._services
            group_id = decode_any_group_id(request.group_id, services.limits)
            asked = self._decode(request)
            caller = compute_caller(context.peer(), "")
            self._access.check_group(caller, Operation.DESCRIBE, group_id)
            if services.history is None:
                raise UnsupportedVersion(
                    "the past is not to be had: this server has no log on disk"
                )
            until = decode_as_of(request.until) if request.HasField("until") else None
            past = await services.history.read_ownerships(
                group_id, until, asked, compute_holder(caller)
            )
            found = past.ownerships
            if not found.is_known:
                raise GroupIdNotFound(f"The log has nothing of group {group_id} up to there.")
            response = history_pb2.ListOwnershipsResponse(
                begin=encode_position(found.begin), end=encode_position(past.position)
            )
            await run_steps(make_rows(response.moments.extend, _encode_moment, found.moments))
            lanes = [
                row
                for row in found.lanes
                if not (name := row[0].topic_name)
                or self._access.sees_topic(caller, Operation.DESCRIBE, name)
            ]
            if found.has_more:
                place = _compute_place(asked, found.lanes, lanes)
                response.next_page_token = compute_page_token(place, _get_filters(request))
            named = await run_steps(_add_lanes(response, lanes))
            # Not those of the lanes left out: they would tell that those have owners.
            members = [found.members[number] for number in named]
            await run_steps(make_rows(response.members.extend, _encode_member, members))
            return response

    def _decode(self, request: history_pb2.ListOwnershipsRequest) -> OwnershipQuestion:
        """The question. Raises ``InvalidField`` for what is out of bounds."""
        if request.since_ms < 0:
            raise InvalidField("since_ms", "since_ms is below 0")
        settings = self._services.settings
        page = compute_page(
            request.page_size,
            request.page_token,
            _get_filters(request),
            settings.grpc_page_size,
            settings.grpc_page_size_max,
        )
        after, skipped = (None, 0) if page.after is None else _decode_place(page.after)
        return OwnershipQuestion(request.since_ms, after, skipped, page.size, SPANS_MAX)


def _get_filters(request: history_pb2.ListOwnershipsRequest) -> tuple[object, ...]:
    until = request.until.SerializeToString() if request.HasField("until") else b""
    return request.group_id, request.since_ms, until


def _compute_place(
    asked: OwnershipQuestion,
    lanes: Sequence[tuple[Lane, tuple[Span, ...]]],
    seen: Sequence[tuple[Lane, tuple[Span, ...]]],
) -> str:
    """Where the next page begins, for a page token.

    A client can read it: it names the last lane that was seen, and counts the others after it.
    """
    if not seen:
        return json.dumps((asked.after, asked.skipped + len(lanes)))
    return json.dumps((seen[-1][0].place, len(lanes) - 1 - lanes.index(seen[-1])))


def _decode_place(text: str) -> tuple[tuple[str, str, int] | None, int]:
    """The place in a page token, which a client may have made up."""
    try:
        after, skipped = json.loads(text)
        if after is not None:
            name, topic_id, partition = after
            after = name, topic_id, partition
    except (ValueError, TypeError, RecursionError):
        raise InvalidField("page_token", "page_token is invalid") from None
    is_place = after is None or [type(each) for each in after] == [str, str, int]
    if not is_place or type(skipped) is not int or skipped < 0:
        raise InvalidField("page_token", "page_token is invalid")
    return after, skipped


def _add_lanes(
    response: history_pb2.ListOwnershipsResponse,
    lanes: Iterable[tuple[Lane, tuple[Span, ...]]],
) -> Steps[list[int]]:
    """Add the lanes, which are sorted by topic, and yield after each slice of spans.

    The result are the members that they name, in the order of their numbers in the response.
    """
    numbers: dict[int, int] = {}
    left, before, topic = SLICE, None, None
    for lane, spans in lanes:
        if topic is None or before != lane.place[:2]:
            before = lane.place[:2]
            topic = response.topics.add(topic_name=lane.topic_name, topic_id=lane.topic_id or b"")
        encoded = [_encode_span(span, numbers) for span in spans]
        topic.partitions.add(partition=lane.partition, spans=encoded)
        left -= len(spans)
        if left <= 0:
            left = SLICE
            yield
    return list(numbers)


def _encode_span(span: Span, numbers: dict[int, int]) -> history_pb2.OwnershipSpan:
    """Encode a span; a member that ``numbers`` lacks gets the next number."""
    moment, owner, target, is_revoking = span

    def number(member: int) -> int | None:
        return None if member < 0 else numbers.setdefault(member, len(numbers))

    return history_pb2.OwnershipSpan(
        moment=moment if moment >= 0 else None,
        owner=number(owner),
        target=number(target),
        is_revoking=is_revoking,
    )


def _encode_member(member: OwningMember) -> history_pb2.OwningMember:
    return history_pb2.OwningMember(
        member_id=member.member_id,
        client_id=member.client_id,
        client_host=member.client_host,
        instance_id=member.instance_id,
    )


def _encode_moment(moment: Moment) -> history_pb2.GroupMoment:
    return history_pb2.GroupMoment(
        log_offset=moment.offset,
        timestamp_ms=moment.timestamp_ms,
        group_epoch=moment.group_epoch,
        members=moment.members,
        partitions_changed=moment.partitions_changed,
    )
