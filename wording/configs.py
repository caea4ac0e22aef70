"""Configs of groups: changes, and what they are before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from model.configs.group_configs import GROUP_CONFIGS
from muster.v1 import admin_pb2
from wording.errors import InputError

Changes = Mapping[str, str | None]
"""New values by name; ``None`` for a config that the group has no longer."""


def check_names(changes: Changes, configs: Sequence[admin_pb2.GroupConfig]) -> None:
    """Raise ``InputError`` for a config that the server does not have; name the nearest one."""
    known = [config.name for config in configs]
    for name in changes:
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}?" if near else "`muster group config GROUP` lists all"
            raise InputError(f"{name!r} is no config of groups: {hint}")


def compute_after(
    changes: Changes, configs: Sequence[admin_pb2.GroupConfig]
) -> list[admin_pb2.GroupConfig]:
    """The configs as they would be after the changes, which the server has found valid."""
    after = []
    for config in configs:
        new = admin_pb2.GroupConfig()
        new.CopyFrom(config)
        given = changes.get(config.name)
        if given is not None:
            new.value, new.source = given, admin_pb2.CONFIG_SOURCE_GROUP
        elif config.name in changes:
            new.value, new.source = config.server_value, _compute_server_source(config)
        after.append(new)
    return after


def _compute_server_source(config: admin_pb2.GroupConfig) -> admin_pb2.ConfigSource:
    known = GROUP_CONFIGS.get(config.name)
    is_default = known is not None and config.server_value == known.default
    return admin_pb2.CONFIG_SOURCE_DEFAULT if is_default else admin_pb2.CONFIG_SOURCE_SERVER


def render_source(source: int) -> str:
    """Render a source as ``group``, ``server`` or ``default``."""
    return admin_pb2.ConfigSource.Name(source).removeprefix("CONFIG_SOURCE_").lower()
