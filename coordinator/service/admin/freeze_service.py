"""``muster.v1.FreezeService``: freeze and resume of the rebalancing of groups."""

from __future__ import annotations

from functools import partial
from typing import TypeAlias, TypeVar

import grpc.aio

from coordinator.service.admin.what_if_messages import encode_answer, encode_move
from coordinator.service.calls.grpc_caller import compute_caller
from coordinator.service.calls.guard import Guard
from coordinator.service.calls.request_ids import RequestIds
from coordinator.service.calls.services import Services
from coordinator.service.wire.answer_slices import make_rows, run_steps
from coordinator.service.wire.decode import decode_group_id
from model.access.acls import Operation
from model.caller import Caller
from model.commands.freezes import FreezeGroup, ResumeGroup
from model.commands.what_if import ComputeWhatIf
from model.ids import GroupId
from model.responses.freezes import GroupFrozen, GroupResumed
from model.what_if import WhatIf, WhatIfAnswer
from muster.v1 import freeze_pb2, freeze_pb2_grpc, what_if_pb2

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")
_Context: TypeAlias = grpc.aio.ServicerContext[_Request, _Response]


class FreezeService(freeze_pb2_grpc.FreezeServiceServicer):
    """Freezes groups. See ``coordinator.service.wire.error_statuses`` for statuses of errors."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._coordinator = services.coordinator
        self._access = services.access
        self._request_ids = RequestIds(services.settings.grpc_request_ids_max, services.limits)

    async def FreezeGroup(  # noqa: N802
        self,
        request: freeze_pb2.FreezeGroupRequest,
        context: _Context[freeze_pb2.FreezeGroupRequest, freeze_pb2.FreezeGroupResponse],
    ) -> freeze_pb2.FreezeGroupResponse:
        async with Guard(context, group_id=request.group_id):
            caller, group_id = self._check(context.peer(), request.group_id)

            async def carry_out() -> freeze_pb2.FreezeGroupResponse:
                command = FreezeGroup(caller, group_id, request.validate_only)
                frozen = await self._coordinator.call(command)
                assert isinstance(frozen, GroupFrozen)
                sees = partial(self._access.sees_topic, caller, Operation.DESCRIBE)
                # Who may freeze a group need not know its members.
                knows = self._access.sees_group(caller, Operation.DESCRIBE, group_id)
                moves = [move for move in frozen.moves if knows and sees(move.topic_name)]
                response = freeze_pb2.FreezeGroupResponse(
                    group_epoch=frozen.group_epoch,
                    without_target=frozen.without_target if knows else (),
                    moves_count=frozen.moves_count,
                    without_target_count=frozen.without_target_count,
                )
                await run_steps(make_rows(response.moves.extend, encode_move, moves))
                return response

            return await self._request_ids.once(
                caller.principal, request, freeze_pb2.FreezeGroupResponse, carry_out
            )

    async def ResumeGroup(  # noqa: N802
        self,
        request: freeze_pb2.ResumeGroupRequest,
        context: _Context[freeze_pb2.ResumeGroupRequest, freeze_pb2.ResumeGroupResponse],
    ) -> freeze_pb2.ResumeGroupResponse:
        async with Guard(context, group_id=request.group_id):
            caller, group_id = self._check(context.peer(), request.group_id)
            if request.validate_only:
                self._access.check_group(caller, Operation.DESCRIBE, group_id)

            async def carry_out() -> freeze_pb2.ResumeGroupResponse:
                command = ResumeGroup(caller, group_id, request.validate_only)
                resumed = await self._coordinator.call(command)
                assert isinstance(resumed, GroupResumed)
                return freeze_pb2.ResumeGroupResponse(
                    group_epoch=resumed.group_epoch,
                    frozen_since_ms=resumed.since_ms,
                    frozen_by=resumed.principal,
                    what_if=await self._foresee(caller, group_id)
                    if request.validate_only
                    else None,
                )

            return await self._request_ids.once(
                caller.principal, request, freeze_pb2.ResumeGroupResponse, carry_out
            )

    def _check(self, peer: str, name: str) -> tuple[Caller, GroupId]:
        group_id = decode_group_id(name, self._services.limits)
        caller = compute_caller(peer, "")
        self._access.check_group(caller, Operation.ALTER_CONFIGS, group_id)
        return caller, group_id

    async def _foresee(self, caller: Caller, group_id: GroupId) -> what_if_pb2.WhatIfResponse:
        """What would move, by the computation of ``WhatIfService``."""
        question = WhatIf(group_id, resumes=True)
        answer = await self._coordinator.call(ComputeWhatIf(caller, group_id, question))
        assert isinstance(answer, WhatIfAnswer)
        return await encode_answer(answer, caller, self._access)
