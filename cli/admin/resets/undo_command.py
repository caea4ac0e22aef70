"""`muster group undo`: the committed offsets as they were before a reset, a deletion or expiry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli.admin.resets.group_reset_commands import make_request_id
from cli.admin.resets.reset_options import ClampOption, GroupArgument, TopicsOption
from cli.asking import ask
from cli.errors import CommandError, ExitCode, usage_errors
from cli.options import (
    DEFAULT_SERVER,
    DEFAULT_TIMEOUT,
    CommandConfigOption,
    DryRunOption,
    OutputOption,
    QuietOption,
    ServerOption,
    TimeoutOption,
    YesOption,
)
from cli.output import Format, print_listing, print_note

if TYPE_CHECKING:
    pass

OFFSET_MAX = (1 << 63) - 2


def undo(
    *,
    group: GroupArgument,
    show_list: Annotated[
        bool, typer.Option("--list", help="Only list the changes that can be undone.")
    ] = False,
    change: Annotated[
        int | None,
        typer.Option(
            "--change",
            metavar="N",
            min=0,
            max=OFFSET_MAX,
            help="The change at this log offset, from --list; the last one if not given.",
        ),
    ] = None,
    topics: TopicsOption = None,
    clamp: ClampOption = False,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    quiet: QuietOption = False,
    output: OutputOption = Format.TABLE,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Undo a reset, a deletion or the expiry of a group's offsets, while the history lasts."""
    from cli.admin.resets.reset_client import connect_for_resets
    from cli.admin.resets.undo_listings import (
        COLUMNS,
        compute_changes,
        compute_rows,
        compute_undo,
    )
    from muster.v1 import reset_pb2
    from wording.resets import add_topics, make_second_request
    from wording.undos import describe_start, describe_undo

    if show_list:
        if change is not None or topics or yes or dry_run:
            raise CommandError("--list only lists: give no other option", ExitCode.USAGE)
        with connect_for_resets(server, timeout, command_config) as client:
            changes, since_ms = client.list_changes(group)
        print_listing(compute_changes(group, changes), output)
        if not quiet:
            for line in describe_start(group, changes, since_ms):
                print_note(line)
        return
    request = reset_pb2.ResetOffsetsRequest(
        group_id=group,
        clamp=clamp,
        validate_only=True,
        undo=reset_pb2.UndoChange(log_offset=change),
    )
    with usage_errors():
        add_topics(request, topics or ())
    with connect_for_resets(server, timeout, command_config) as client:
        shown = client.reset_offsets(request)
        if not dry_run:
            if not yes:
                rows = [row[1:] for row in compute_rows(group, shown)]
                ask(COLUMNS[1:], rows, describe_undo(shown))
            shown = client.reset_offsets(make_second_request(request, shown, make_request_id()))
            if shown.live:
                client.wait_until_set(group, shown.group_epoch)
    print_listing(compute_undo(group, shown), output)
    if not quiet:
        count = len(shown.partitions)
        print_note(f"would be undone: {count}" if dry_run else f"undone: {count}")
