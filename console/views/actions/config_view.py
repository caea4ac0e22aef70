"""Changes of a group's configs, as they are shown."""

from __future__ import annotations

from collections.abc import Sequence

from console.views.actions.preview import Outcome, Preview, compute_token
from console.views.tables import Table, make_table
from muster.v1 import admin_pb2
from wording.commands import render_command
from wording.configs import Changes, compute_after, render_source


def compute_changes(
    configs: Sequence[admin_pb2.GroupConfig], own: dict[str, str]
) -> dict[str, str | None]:
    """What is to be changed so that the group's own values are ``own``."""
    changes: dict[str, str | None] = {}
    for config in configs:
        is_own = config.source == admin_pb2.CONFIG_SOURCE_GROUP
        wanted = own.get(config.name)
        if wanted is None and is_own:
            changes[config.name] = None
        elif wanted is not None and not (is_own and config.value == wanted):
            changes[config.name] = wanted
    # A name that the server does not have is its to refuse.
    known = {config.name for config in configs}
    return changes | {name: value for name, value in own.items() if name not in known}


def compute_config_preview(
    group_id: str,
    configs: Sequence[admin_pb2.GroupConfig],
    changes: Changes,
    fields: Sequence[tuple[str, str]],
) -> Preview:
    """The configs before and after."""
    after = compute_after(changes, configs)
    return Preview(
        f"Change configs of {group_id}",
        ["They are in force at once, all of them or none."],
        "Change",
        compute_token(configs),
        _render(group_id, changes),
        [_make_table(changes, configs, after)],
        fields=fields,
    )


def compute_config_outcome(
    group_id: str,
    before: Sequence[admin_pb2.GroupConfig],
    after: Sequence[admin_pb2.GroupConfig],
    changes: Changes,
) -> Outcome:
    """The configs as they are now."""
    return Outcome(
        f"Configs of {group_id} are changed",
        ["They are in force."],
        _render(group_id, changes),
        [_make_table(changes, before, after)],
    )


def _make_table(
    changes: Changes,
    before: Sequence[admin_pb2.GroupConfig],
    after: Sequence[admin_pb2.GroupConfig],
) -> Table:
    old, new = ({config.name: config for config in configs} for configs in (before, after))
    rows = [
        (
            name,
            old[name].value,
            new[name].value,
            render_source(old[name].source),
            render_source(new[name].source),
        )
        for name in changes
        if name in old and name in new
    ]
    columns = ("Config", "Before", "After", "Source before", "Source after")
    return make_table("configs", "Configs before, and after", columns, rows, len(rows))


def _render(group_id: str, changes: Changes) -> str:
    words: list[str] = []
    for name, value in changes.items():
        words += ("--unset", name) if value is None else ("--set", f"{name}={value}")
    return render_command("group", "config", group_id, *words)
