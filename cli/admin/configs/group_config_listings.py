"""Configs of a group, and changes of them, as tables and for programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from cli.errors import CommandError, ExitCode
from cli.output import Listing

if TYPE_CHECKING:
    from muster.v1 import admin_pb2

Changes = Mapping[str, str | None]
"""New values by name; ``None`` for a config that the group has no longer."""

CHANGE_COLUMNS: Final = ("NAME", "NEW-VALUE", "CURRENT-VALUE", "NEW-SOURCE", "CURRENT-SOURCE")


def parse_changes(assignments: Iterable[str], removed: Iterable[str] = ()) -> dict[str, str | None]:
    """Parse ``NAME=VALUE`` and names to remove. Raises ``USAGE`` for a name that is there twice."""
    changes: dict[str, str | None] = {}
    for text in assignments:
        name, equals, value = text.partition("=")
        if not name or not equals or name in changes:
            raise CommandError(f"{text!r}: write each config once, as NAME=VALUE", ExitCode.USAGE)
        changes[name] = value
    for name in removed:
        if name in changes:
            raise CommandError(f"{name!r}: set or remove each config once", ExitCode.USAGE)
        changes[name] = None
    return changes


def check_names(changes: Changes, configs: Sequence[admin_pb2.GroupConfig]) -> None:
    """Raise ``USAGE`` for a config that the server does not have, with the name that is nearest."""
    known = [config.name for config in configs]
    for name in changes:
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}?" if near else "`muster group config GROUP` lists all"
            raise CommandError(f"{name!r} is no config of groups: {hint}", ExitCode.USAGE)


def compute_group_listing(group: str, configs: Sequence[admin_pb2.GroupConfig]) -> Listing:
    """The configs of a group and the source of each value."""
    rows = [
        [config.name, config.value, render_source(config.source), config.server_value]
        for config in configs
    ]
    fields = ("name", "value", "source", "server_value")
    items = [dict(zip(fields, row, strict=True)) for row in rows]
    content = {"group_id": group, "configs": items}
    return Listing(
        "config.get", ["NAME", "VALUE", "SOURCE", "SERVER-VALUE"], rows, content, "configs", 1
    )


def compute_after(
    changes: Changes, configs: Sequence[admin_pb2.GroupConfig]
) -> list[admin_pb2.GroupConfig]:
    """The configs as they would be after the changes, which the server has found valid."""
    from muster.v1 import admin_pb2

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
    from model.configs.group_configs import GROUP_CONFIGS
    from muster.v1 import admin_pb2

    known = GROUP_CONFIGS.get(config.name)
    is_default = known is not None and config.server_value == known.default
    return admin_pb2.CONFIG_SOURCE_DEFAULT if is_default else admin_pb2.CONFIG_SOURCE_SERVER


def compute_change_listing(
    group: str,
    names: Iterable[str],
    before: Sequence[admin_pb2.GroupConfig],
    after: Sequence[admin_pb2.GroupConfig],
) -> Listing:
    """Value and source of these configs, before and after."""
    old, new = ({config.name: config for config in configs} for configs in (before, after))
    rows = [
        [
            name,
            new[name].value,
            old[name].value,
            render_source(new[name].source),
            render_source(old[name].source),
        ]
        for name in names
    ]
    fields = [column.lower().replace("-", "_") for column in CHANGE_COLUMNS]
    items = [dict(zip(fields, row, strict=True)) for row in rows]
    content = {"group_id": group, "changes": items}
    return Listing("group.config", CHANGE_COLUMNS, rows, content, "changes")


def render_source(source: int) -> str:
    """Render a source as ``group``, ``server`` or ``default``."""
    from muster.v1 import admin_pb2

    return admin_pb2.ConfigSource.Name(source).removeprefix("CONFIG_SOURCE_").lower()
