"""Changes of a group's configs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from console.pages.actions.action import Action, check_still, read_request_id
from console.refusals import Refused
from console.site import Visit
from console.views.actions.config_view import (
    compute_changes,
    compute_config_outcome,
    compute_config_preview,
)
from console.views.actions.preview import Outcome, Preview, compute_token
from muster.v1 import admin_pb2
from wording.configs import Changes, check_names

OWN: Final = "own:"
VALUE: Final = "value:"


async def describe_configs(visit: Visit, group_id: str) -> Sequence[admin_pb2.GroupConfig]:
    """The configs of a group."""
    request = admin_pb2.DescribeGroupConfigsRequest(group_id=group_id)
    answer = await visit.ask("AdminService", "DescribeGroupConfigs", request)
    configs: Sequence[admin_pb2.GroupConfig] = answer.configs
    return configs


def make_alteration(
    group_id: str, changes: Changes, *, validate_only: bool, request_id: str = ""
) -> admin_pb2.AlterGroupConfigsRequest:
    """The request that makes changes."""
    return admin_pb2.AlterGroupConfigsRequest(
        group_id=group_id,
        changes=[admin_pb2.ConfigChange(name=name, value=value) for name, value in changes.items()],
        validate_only=validate_only,
        request_id=request_id,
    )


def _read_changes(visit: Visit, configs: Sequence[admin_pb2.GroupConfig]) -> Changes:
    """What the form changes: a config is the group's own if its box is checked."""
    values = {name: value for name, value in visit.form if name.startswith(VALUE)}
    own = {
        name.removeprefix(OWN): values.get(VALUE + name.removeprefix(OWN), "").strip()
        for name, _ in visit.form
        if name.startswith(OWN)
    }
    changes = compute_changes(configs, own)
    check_names(changes, configs)
    return changes


async def _preview(visit: Visit, group_id: str) -> Preview:
    configs = await describe_configs(visit, group_id)
    changes = _read_changes(visit, configs)
    if not changes:
        raise Refused(400, "Nothing would change: write another value, or check a box.")
    request = make_alteration(group_id, changes, validate_only=True)
    await visit.ask("AdminService", "AlterGroupConfigs", request)
    fields = [(name, value) for name, value in visit.form if name.startswith((OWN, VALUE))]
    return compute_config_preview(group_id, configs, changes, fields)


async def _change(visit: Visit, group_id: str) -> Outcome:
    before = await describe_configs(visit, group_id)
    check_still(visit, compute_token(before))
    changes = _read_changes(visit, before)
    request_id = read_request_id(visit)
    request = make_alteration(group_id, changes, validate_only=False, request_id=request_id)
    await visit.ask("AdminService", "AlterGroupConfigs", request)
    after = await describe_configs(visit, group_id)
    return compute_config_outcome(group_id, before, after, changes)


CONFIG_ACTIONS: Final = (Action("configs", _preview, _change),)
