"""``muster.v1.ExplainService``: why groups rebalanced."""

from __future__ import annotations

from typing import Final, TypeAlias

import grpc.aio

from coordinator.service.calls.grpc_caller import compute_caller
from coordinator.service.calls.guard import Guard
from coordinator.service.calls.services import Services
from coordinator.service.wire.answer_slices import make_rows, run_steps
from coordinator.service.wire.decode import decode_any_group_id
from coordinator.service.wire.error_statuses import InvalidField
from coordinator.service.wire.paging import compute_page, compute_page_token, decode_number
from model.access.acls import Operation
from model.caller import Caller
from model.commands.explain import ExplainRebalances
from model.ids import TopicName
from model.past.rebalances import EndedRebalance, Ending, HeldUp, UnreadableRebalance
from model.responses.explain import ExplainGroupResponse
from muster.v1 import explain_pb2, explain_pb2_grpc

_TIME_MAX: Final = (1 << 63) - 1
_EPOCH_MAX: Final = (1 << 32) - 1

_Context: TypeAlias = grpc.aio.ServicerContext[
    explain_pb2.ExplainGroupRequest, explain_pb2.ExplainGroupResponse
]

_ENDINGS: Final = {
    Ending.UNKNOWN: explain_pb2.REBALANCE_ENDING_UNSPECIFIED,
    Ending.CONVERGED: explain_pb2.REBALANCE_ENDING_CONVERGED,
    Ending.OVERTAKEN: explain_pb2.REBALANCE_ENDING_OVERTAKEN,
    Ending.GOES_ON: explain_pb2.REBALANCE_ENDING_GOES_ON,
}


class ExplainService(explain_pb2_grpc.ExplainServiceServicer):
    """Tells the rebalances of groups.

    See ``coordinator.service.wire.error_statuses`` for the statuses of errors.
    """

    def __init__(self, services: Services) -> None:
        self._coordinator = services.coordinator
        self._access = services.access
        self._limits = services.limits
        self._settings = services.settings

    async def ExplainGroup(  # noqa: N802
        self, request: explain_pb2.ExplainGroupRequest, context: _Context
    ) -> explain_pb2.ExplainGroupResponse:
        async with Guard(context, group_id=request.group_id):
            caller = compute_caller(context.peer(), "")
            command = self._decode(request, caller)
            self._access.check_group(caller, Operation.DESCRIBE, command.group_id)
            answer = await self._coordinator.call(command)
            assert isinstance(answer, ExplainGroupResponse)
            response = explain_pb2.ExplainGroupResponse()
            if answer.has_more:
                ended = answer.rebalances[-1]
                last = ended if isinstance(ended, UnreadableRebalance) else ended.rebalance
                place = f"{last.at_ms}.{last.epoch}"
                response.next_page_token = compute_page_token(place, _get_filters(request))

            def encode(ended: EndedRebalance | UnreadableRebalance) -> explain_pb2.Rebalance:
                return self._encode(ended, caller)

            await run_steps(make_rows(response.rebalances.extend, encode, answer.rebalances))
            return response

    def _decode(
        self, request: explain_pb2.ExplainGroupRequest, caller: Caller
    ) -> ExplainRebalances:
        """The command. Raises ``InvalidField`` and the like for what is out of bounds."""
        for field in ("since_ms", "until_ms"):
            if getattr(request, field) < 0:
                raise InvalidField(field, f"{field} is below 0")
        group_id = decode_any_group_id(request.group_id, self._limits)
        page = compute_page(
            request.page_size,
            request.page_token,
            _get_filters(request),
            self._settings.grpc_page_size,
            self._settings.grpc_page_size_max,
        )
        before = (request.until_ms, 0) if request.until_ms else None
        if page.after is not None:
            before = _decode_place(page.after)
        return ExplainRebalances(caller, group_id, request.since_ms, before, page.size)

    def _encode(
        self, ended: EndedRebalance | UnreadableRebalance, caller: Caller
    ) -> explain_pb2.Rebalance:
        if isinstance(ended, UnreadableRebalance):
            return explain_pb2.Rebalance(
                began_ms=ended.at_ms,
                epoch=ended.epoch,
                ending=explain_pb2.REBALANCE_ENDING_UNREADABLE,
            )
        rebalance, cause = ended.rebalance, ended.rebalance.cause
        topic = cause.topic_name
        if topic and not self._access.sees_topic(caller, Operation.DESCRIBE, topic):
            topic = TopicName("")
        return explain_pb2.Rebalance(
            began_ms=rebalance.at_ms,
            epoch_before=rebalance.epoch_before,
            epoch=rebalance.epoch,
            is_classic=rebalance.is_classic,
            cause=f"REBALANCE_CAUSE_{cause.kind.name}",
            causes=rebalance.causes,
            member_id=cause.member_id,
            client_id=cause.client_id,
            client_host=cause.client_host,
            instance_id=cause.instance_id or "",
            reason=cause.reason,
            topic_name=topic,
            heartbeat_age_ms=cause.heartbeat_age_ms,
            partitions_moved=rebalance.moved,
            ending=_ENDINGS[ended.ending],
            ended_ms=ended.ended_ms,
            held_up=map(_encode_held_up, rebalance.held_up),
        )


def _get_filters(request: explain_pb2.ExplainGroupRequest) -> tuple[object, ...]:
    return request.group_id, request.since_ms, request.until_ms


def _decode_place(text: str) -> tuple[int, int]:
    """The time and the epoch in a page token, which a client may have made up."""
    at_ms, _, epoch = text.partition(".")
    return decode_number(at_ms, _TIME_MAX), decode_number(epoch, _EPOCH_MAX)


def _encode_held_up(held: HeldUp) -> explain_pb2.HeldUp:
    return explain_pb2.HeldUp(
        member_id=held.member_id,
        client_id=held.client_id,
        step=f"HELD_UP_STEP_{held.by.name}",
        took_ms=held.took_ms,
    )
