"""The way of a group back to the classic protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from console.pages.actions.action import Action, check_still, read_request_id
from console.pages.actions.config_actions import describe_configs, make_alteration
from console.site import Visit
from console.views.actions.preview import Outcome, Preview
from console.views.actions.rollback_view import compute_rollback_outcome, compute_rollback_preview
from muster.v1 import admin_pb2
from wording.migrations import POLICY, ROLLED_BACK, find_consumer_members

_ROLLED_BACK: Final = {POLICY: ROLLED_BACK}


async def _describe(visit: Visit, group_id: str) -> admin_pb2.Group:
    request = admin_pb2.DescribeGroupRequest(group_id=group_id)
    group: admin_pb2.Group = (await visit.ask("AdminService", "DescribeGroup", request)).group
    return group


async def _convert(visit: Visit, group_id: str, *, validate_only: bool) -> None:
    request = admin_pb2.ConvertToClassicGroupRequest(group_id=group_id, validate_only=validate_only)
    await visit.ask("AdminService", "ConvertToClassicGroup", request)


async def _preview(visit: Visit, group_id: str) -> Preview:
    group = await _describe(visit, group_id)
    configs = await describe_configs(visit, group_id)
    if not find_consumer_members(group):
        # First, so that a conversion that fails does not change the policy.
        await _convert(visit, group_id, validate_only=True)
    request = make_alteration(group_id, _ROLLED_BACK, validate_only=True)
    await visit.ask("AdminService", "AlterGroupConfigs", request)
    return compute_rollback_preview(group, configs)


async def _roll_back(visit: Visit, group_id: str) -> Outcome:
    check_still(visit, (await _preview(visit, group_id)).token)
    request_id = read_request_id(visit)
    request = make_alteration(group_id, _ROLLED_BACK, validate_only=False, request_id=request_id)
    await visit.ask("AdminService", "AlterGroupConfigs", request)
    # The last one may have left before the policy took effect.
    left: Sequence[admin_pb2.GroupMember] = find_consumer_members(await _describe(visit, group_id))
    if not left:
        await _convert(visit, group_id, validate_only=False)
    return compute_rollback_outcome(group_id, left)


ROLLBACK_ACTIONS: Final = (Action("rollback", _preview, _roll_back),)
