"""`muster group`: the list of its commands, each in a module of its own."""

from __future__ import annotations

import typer

from cli.admin.configs.group_config_command import group_config
from cli.admin.freezes.freeze_commands import freeze, resume
from cli.admin.group.group_delete_commands import delete, delete_offsets
from cli.admin.group.group_describe import describe
from cli.admin.group.group_list import list_groups
from cli.admin.group.group_offsets import offsets
from cli.admin.group.group_remove_member import remove_member
from cli.admin.resets.group_reset_commands import reset, seek
from cli.admin.resets.undo_command import undo
from cli.admin.watch.watch_command import watch_group

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="List, describe, reset and delete groups."
)
app.command("list")(list_groups)
app.command()(describe)
app.command()(offsets)
app.command("watch")(watch_group)
app.command("config")(group_config)
app.command("remove-member")(remove_member)
app.command()(delete)
app.command("delete-offsets")(delete_offsets)
app.command()(freeze)
app.command()(resume)
app.command()(reset)
app.command()(seek)
app.command()(undo)
