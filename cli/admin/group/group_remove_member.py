"""`muster group remove-member`."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from cli.admin.group.group_renders import GroupArgument
from cli.asking import ask
from cli.errors import CommandError, ExitCode
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
from cli.output import Format, Listing, print_listing, print_note
from wording.groups import render_partitions

if TYPE_CHECKING:
    from cli.admin_client import AdminClient
    from muster.v1 import admin_pb2

COLUMNS: Final = (
    "GROUP",
    "CONSUMER-ID",
    "GROUP-INSTANCE-ID",
    "HOST",
    "CLIENT-ID",
    "#PARTITIONS",
    "FREED-PARTITIONS",
)


def remove_member(
    *,
    group: GroupArgument,
    members: Annotated[
        list[str] | None, typer.Option("--member", metavar="ID", help="A member id. Repeatable.")
    ] = None,
    instances: Annotated[
        list[str] | None,
        typer.Option("--instance", metavar="ID", help="An instance id. Repeatable."),
    ] = None,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why.")] = "",
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    quiet: QuietOption = False,
    output: OutputOption = Format.TABLE,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Remove members of a group, all or none, as if they had left. Who is alive may join again."""
    from cli.admin_client import connect

    if not members and not instances:
        raise CommandError("say whom: --member ID or --instance ID", ExitCode.USAGE)
    request = _make_request(group, members or (), instances or (), reason)
    with connect(server, timeout, command_config) as client:
        removed = _carry_out(client, request, yes=yes, dry_run=dry_run)
    print_listing(compute_listing(group, removed), output)
    if not quiet:
        done = "would be removed" if dry_run else "removed"
        print_note(f"{done}: {len(removed.members)}, left: {removed.remaining}")


def _make_request(
    group: str, members: Sequence[str], instances: Sequence[str], reason: str
) -> admin_pb2.RemoveMembersRequest:
    from muster.v1 import admin_pb2

    return admin_pb2.RemoveMembersRequest(
        group_id=group,
        members=[
            *(admin_pb2.MemberToRemove(member_id=name) for name in members),
            *(admin_pb2.MemberToRemove(instance_id=name) for name in instances),
        ],
        reason=reason,
    )


def _carry_out(
    client: AdminClient, request: admin_pb2.RemoveMembersRequest, *, yes: bool, dry_run: bool
) -> admin_pb2.RemoveMembersResponse:
    """Show whom it concerns, ask, and remove them if the group is still as it was shown."""
    if dry_run or not yes:
        request.validate_only = True
        shown = _call(client, request)
        if dry_run:
            return shown
        rows = [row[1:] for row in compute_listing(request.group_id, shown).rows]
        ask(COLUMNS[1:], rows, _describe_effect(request.group_id, shown))
        request.preview = shown.preview
        request.validate_only = False
    request.request_id = str(uuid.uuid4())
    return _call(client, request)


def _call(
    client: AdminClient, request: admin_pb2.RemoveMembersRequest
) -> admin_pb2.RemoveMembersResponse:
    """Remove members; one that is not there is not found, as a group is."""
    try:
        return client.remove_members(request)
    except CommandError as error:
        if error.message.startswith("UNKNOWN_MEMBER_ID"):
            who = f"`muster group describe {request.group_id}` shows the members"
            message = f"{error.message.rstrip('.')}: {who}"
            raise CommandError(message, ExitCode.NOT_FOUND) from error
        raise


def _describe_effect(group: str, shown: admin_pb2.RemoveMembersResponse) -> str:
    count = sum(len(topic.partitions) for each in shown.members for topic in each.assignment)
    others = {0: "nobody is left", 1: "1 member is left"}.get(
        shown.remaining, f"{shown.remaining} members are left"
    )
    return (
        f"They are removed from {group}, and {count} partitions become free: {others}. "
        "Who is alive is told UNKNOWN_MEMBER_ID, and may join again: stop it first."
    )


def compute_listing(group: str, removed: admin_pb2.RemoveMembersResponse) -> Listing:
    """The members with what they owned, as they were."""
    from cli.messages import as_dict

    rows = [
        [
            group,
            member.member_id,
            member.instance_id,
            member.client_host,
            member.client_id,
            sum(len(topic.partitions) for topic in member.assignment),
            render_partitions(member.assignment),
        ]
        for member in removed.members
    ]
    content = {"group_id": group, **as_dict(removed)}
    return Listing("group.remove-member", COLUMNS, rows, content, "members")
