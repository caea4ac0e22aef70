"""`muster group`: the list of its commands, each in a module of its own.

A module is imported when its command is asked for: all of them take as long as the command itself.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

import typer

COMMANDS: Final = {
    "list": ("cli.admin.group.group_list", "list_groups"),
    "describe": ("cli.admin.group.group_describe", "describe"),
    "offsets": ("cli.admin.group.group_offsets", "offsets"),
    "watch": ("cli.admin.watch.watch_command", "watch_group"),
    "config": ("cli.admin.configs.group_config_command", "group_config"),
    "remove-member": ("cli.admin.group.group_remove_member", "remove_member"),
    "delete": ("cli.admin.group.group_delete_commands", "delete"),
    "delete-offsets": ("cli.admin.group.group_delete_commands", "delete_offsets"),
    "freeze": ("cli.admin.freezes.freeze_commands", "freeze"),
    "resume": ("cli.admin.freezes.freeze_commands", "resume"),
    "reset": ("cli.admin.resets.group_reset_commands", "reset"),
    "seek": ("cli.admin.resets.group_reset_commands", "seek"),
    "undo": ("cli.admin.resets.undo_command", "undo"),
}
"""The module of each command, and its name there; in the order of the help."""


def make_group_app(only: str | None = None) -> typer.Typer:
    """All commands, or one alone; all if it is none of them."""
    made = typer.Typer(
        no_args_is_help=True, rich_markup_mode=None, help="List, describe, reset and delete groups."
    )
    # With a callback a command that is alone keeps its name.
    made.callback()(_do_nothing)
    for name in (only,) if only in COMMANDS else COMMANDS:
        module, attribute = COMMANDS[name]
        made.command(name)(getattr(import_module(module), attribute))
    return made


def _do_nothing() -> None:
    pass
