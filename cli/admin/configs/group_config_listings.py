"""Configs of a group, and changes of them, as tables and for programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from cli.errors import CommandError, ExitCode
from cli.output import Listing
from wording.configs import render_source

if TYPE_CHECKING:
    from muster.v1 import admin_pb2

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
