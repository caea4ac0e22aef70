"""`muster group freeze` and `resume`: rebalancing of a group stands still for as long as wanted."""

from __future__ import annotations

from cli.admin.group.group_renders import GroupArgument
from cli.asking import ask
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


def freeze(
    *,
    group: GroupArgument,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    quiet: QuietOption = False,
    output: OutputOption = Format.TABLE,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Freeze the rebalancing of a consumer group: nothing moves until it is resumed."""
    from cli.admin.freezes.freeze_client import connect_for_freezes
    from cli.admin.freezes.freeze_listings import compute_freeze
    from cli.admin.whatif.whatif_listing import COLUMNS, compute_moves

    with connect_for_freezes(server, timeout, command_config) as client:
        shown = client.freeze(group, dry_run or not yes)
        if not dry_run and not yes:
            effect = (
                f"Rebalancing of {group} will be frozen: members that join get nothing, and the "
                "partitions of members that leave have no owner until it is resumed."
            )
            if shown.moves:
                effect += " The moves above still come to their end."
            ask(COLUMNS, compute_moves(group, shown.moves), effect)
            shown = client.freeze(group, False)
    print_listing(compute_freeze(group, shown, dry_run), output)
    if not quiet:
        print_note("would be frozen" if dry_run else "frozen")


def resume(
    *,
    group: GroupArgument,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    quiet: QuietOption = False,
    output: OutputOption = Format.TABLE,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Resume the rebalancing of a frozen group, which gets a new target assignment at once."""
    from cli.admin.freezes.freeze_client import connect_for_freezes
    from cli.admin.freezes.freeze_listings import compute_resume
    from cli.admin.whatif.whatif_listing import COLUMNS, compute_moves

    with connect_for_freezes(server, timeout, command_config) as client:
        shown = client.resume(group, dry_run or not yes)
        if not dry_run and not yes:
            moves = compute_moves(group, shown.what_if.moves)
            ask(COLUMNS, moves, f"Rebalancing of {group} will be resumed: this moves at once.")
            shown = client.resume(group, False)
    print_listing(compute_resume(group, shown, dry_run), output)
    if not quiet:
        print_note("would be resumed" if dry_run else "resumed")
