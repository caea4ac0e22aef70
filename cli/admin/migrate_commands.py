"""`muster migrate`: move groups from the classic protocol to the consumer protocol, and back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.admin.group.group_renders import GroupArgument
from cli.admin.migrate_listings import compute_plan, compute_rollback, compute_status
from cli.errors import CommandError, ExitCode
from cli.options import (
    DEFAULT_SERVER,
    DEFAULT_TIMEOUT,
    CommandConfigOption,
    DryRunOption,
    OutputOption,
    ServerOption,
    TimeoutOption,
)
from cli.output import Format, print_listing
from wording.migrations import POLICY, ROLLED_BACK, find_consumer_members

if TYPE_CHECKING:
    from cli.admin_client import AdminClient
    from muster.v1 import admin_pb2

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Move a group from the classic to the consumer protocol, and back.",
)


@app.command()
def plan(
    group: GroupArgument,
    output: OutputOption = Format.TABLE,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Show what prevents a conversion, member by member, and what to set in each client."""
    from cli.admin_client import connect

    with connect(server, timeout, command_config) as client:
        found = client.plan_migration(group)
    print_listing(compute_plan(found), output)


@app.command()
def status(
    group: GroupArgument,
    output: OutputOption = Format.TABLE,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Show each member's protocol, the members left to replace, and the partitions to move."""
    from cli.admin_client import connect

    with connect(server, timeout, command_config) as client:
        found = client.describe_group(group).group
        policy = _find_policy(client, group)
    print_listing(compute_status(found, policy), output)


@app.command()
def rollback(
    *,
    group: GroupArgument,
    offline: Annotated[
        bool,
        typer.Option("--offline", help="Convert now or fail; do not wait for members to leave."),
    ] = False,
    data_dir: Annotated[
        Path | None,
        typer.Option(
            "--data-dir",
            metavar="STORE",
            help="With --offline: data folder of a stopped server.",
        ),
    ] = None,
    dry_run: DryRunOption = False,
    output: OutputOption = Format.TABLE,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Move a group back to the classic protocol, with its offsets.

    Sets the group's consumer.migration.policy to downgrade. The group is converted when its last
    member of the consumer protocol leaves (at once if there is none) and is not upgraded again.
    """
    from cli.admin_client import connect

    if data_dir is not None:
        if not offline:
            raise CommandError("--data-dir requires --offline", ExitCode.USAGE)
        _roll_back_stopped(data_dir, group, dry_run)
        listing = compute_rollback(group, (), dry_run)
    else:
        with connect(server, timeout, command_config) as client:
            left = _roll_back_running(client, group, offline, dry_run)
        listing = compute_rollback(group, left, dry_run)
    print_listing(listing, output)


def _roll_back_running(
    client: AdminClient, group: str, offline: bool, dry_run: bool
) -> list[admin_pb2.GroupMember]:
    """Roll back on a running server; return the consumer-protocol members that are left."""
    consumer_members = find_consumer_members(client.describe_group(group).group)
    if offline or not consumer_members:
        # Check first, so that a conversion that fails does not change the policy.
        client.convert_to_classic_group(group, validate_only=True)
        consumer_members = []
    client.alter_group_configs(group, {POLICY: ROLLED_BACK}, dry_run)
    if consumer_members and not dry_run:
        # The last one may have left before the policy took effect.
        consumer_members = find_consumer_members(client.describe_group(group).group)
    if not consumer_members:
        client.convert_to_classic_group(group, dry_run)
    return consumer_members


def _roll_back_stopped(data_dir: Path, group: str, dry_run: bool) -> None:
    import time

    from cli.log.backup_commands import compute_advice
    from cli.log.log_sources import find_store, source_errors
    from coordinator.runtime.offline import convert_to_classic_offline
    from model.errors import GroupError, GroupIdNotFound
    from model.ids import GroupId
    from storage.folder.replacement import finish_replacement
    from storage.log_store import StoreLocked
    from storage.rocks.rocks_opening import open_store

    with source_errors():
        finish_replacement(data_dir / "store")
        store = find_store(data_dir)
        if store is None:
            raise CommandError(f"{data_dir} holds no Muster store", ExitCode.NOT_FOUND)
        try:
            opened = open_store(store, partitions=1)
        except StoreLocked as error:
            raise CommandError(compute_advice(data_dir, error), ExitCode.PRECONDITION) from error
        try:
            wall_ms = time.time_ns() // 1_000_000
            convert_to_classic_offline(opened, GroupId(group), wall_ms, validate_only=dry_run)
        except GroupIdNotFound as error:
            raise CommandError(f"{error.code.name}: {error.message}", ExitCode.NOT_FOUND) from error
        except GroupError as error:
            message = f"{error.code.name}: {error.message}"
            raise CommandError(message, ExitCode.PRECONDITION) from error
        finally:
            opened.close()


def _find_policy(client: AdminClient, group: str) -> str:
    """The migration policy in force for the group."""
    configs = client.describe_group_configs(group)
    return next((config.value for config in configs if config.name == POLICY), "")
