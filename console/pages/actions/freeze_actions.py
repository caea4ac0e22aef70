"""Freeze and resume."""

from __future__ import annotations

from typing import Final

import grpc

from console.pages.actions.action import TOKEN_FIELD, Action, check_still, read_request_id
from console.site import Visit
from console.views.actions.freeze_view import (
    compute_blind_resume_preview,
    compute_freeze_outcome,
    compute_freeze_preview,
    compute_resume_outcome,
    compute_resume_preview,
)
from console.views.actions.preview import Outcome, Preview
from coordinator.service.calls.local_calls import CallRefused
from muster.v1 import freeze_pb2


async def _preview_freeze(visit: Visit, group_id: str) -> Preview:
    request = freeze_pb2.FreezeGroupRequest(group_id=group_id, validate_only=True)
    shown = await visit.ask("FreezeService", "FreezeGroup", request)
    return compute_freeze_preview(group_id, shown)


async def _freeze(visit: Visit, group_id: str) -> Outcome:
    check_still(visit, (await _preview_freeze(visit, group_id)).token)
    request = freeze_pb2.FreezeGroupRequest(group_id=group_id, request_id=read_request_id(visit))
    done = await visit.ask("FreezeService", "FreezeGroup", request)
    return compute_freeze_outcome(group_id, done)


async def _preview_resume(visit: Visit, group_id: str) -> Preview:
    request = freeze_pb2.ResumeGroupRequest(group_id=group_id, validate_only=True)
    try:
        shown = await visit.ask("FreezeService", "ResumeGroup", request)
    except CallRefused as error:
        # A member computes the assignments.
        if error.status is not grpc.StatusCode.INVALID_ARGUMENT:
            raise
        return compute_blind_resume_preview(group_id, error.message)
    return compute_resume_preview(group_id, shown)


async def _resume(visit: Visit, group_id: str) -> Outcome:
    if visit.find_field(TOKEN_FIELD):
        check_still(visit, (await _preview_resume(visit, group_id)).token)
    request = freeze_pb2.ResumeGroupRequest(group_id=group_id, request_id=read_request_id(visit))
    done = await visit.ask("FreezeService", "ResumeGroup", request)
    return compute_resume_outcome(group_id, done)


FREEZE_ACTIONS: Final = (
    Action("freeze", _preview_freeze, _freeze),
    Action("resume", _preview_resume, _resume),
)
