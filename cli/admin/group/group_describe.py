"""`muster group describe`."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING

from cli.admin.group.group_offsets import list_offsets_of
from cli.admin.group.group_options import (
    AllOption,
    GroupsArgument,
    MembersOption,
    OffsetsOption,
    PatternOption,
    StateOption,
    UnconvergedOption,
    VerboseOption,
)
from cli.admin.group.group_renders import add_position
from cli.admin.group.group_selection import (
    check_selection,
    find_group_ids,
    raise_failed,
    read_each,
)
from cli.admin.group.group_views import (
    compute_description,
    compute_descriptions,
    compute_members,
    compute_states,
)
from cli.errors import CommandError, ExitCode
from cli.log.as_of_option import AsOfOption, parse_as_of_option
from cli.options import (
    DEFAULT_SERVER,
    DEFAULT_TIMEOUT,
    CommandConfigOption,
    OutputOption,
    ServerOption,
    TimeoutOption,
)
from cli.output import Format, Listing, print_listing

if TYPE_CHECKING:
    from muster.v1 import admin_pb2


class View(Enum):
    """What is shown of a group."""

    ALL = "all"
    MEMBERS = "members"
    OFFSETS = "offsets"
    STATE = "state"


def describe(
    *,
    groups: GroupsArgument = None,
    is_all: AllOption = False,
    pattern: PatternOption = None,
    unconverged: UnconvergedOption = False,
    members: MembersOption = False,
    offsets: OffsetsOption = False,
    state: StateOption = False,
    verbose: VerboseOption = False,
    as_of: AsOfOption = None,
    output: OutputOption = Format.TABLE,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Show groups' epochs, and each member's epoch, state and partitions."""
    from cli.admin_client import connect

    named = list(dict.fromkeys(groups or ()))
    view = _choose_view(members, offsets, state, verbose)
    sought = not named
    check_selection(named, is_all, pattern, unconverged)
    position = parse_as_of_option(as_of)
    if position is not None and (sought or len(named) > 1 or view is View.OFFSETS):
        raise CommandError(
            "--as-of is for one named group; for offsets, see muster group offsets --as-of",
            ExitCode.USAGE,
        )
    with connect(server, timeout, command_config) as client:
        if sought:
            named = find_group_ids(client, pattern, unconverged)
        is_one = not sought and len(named) == 1
        if is_one and view is View.ALL:
            found = client.describe_group(named[0], position)
            print_listing(add_position(compute_description(found.group), found), output)
            return
        if view is View.OFFSETS:
            failed = list_offsets_of(client, named, sought, verbose, output)
        else:
            found_all, failed = read_each(
                named, lambda group_id: client.describe_group(group_id, position), sought
            )
            if found_all or sought:
                shown = [each.group for each in found_all]
                listing = _compute_view(shown, view, verbose, server)
                for each in found_all:
                    listing = add_position(listing, each)
                print_listing(listing, output)
    raise_failed(failed, is_one)


def _choose_view(members: bool, offsets: bool, state: bool, verbose: bool) -> View:
    chosen = [
        view
        for view, is_chosen in (
            (View.MEMBERS, members),
            (View.OFFSETS, offsets),
            (View.STATE, state),
        )
        if is_chosen
    ]
    if len(chosen) > 1:
        raise CommandError("choose one of --members, --offsets and --state", ExitCode.USAGE)
    if verbose and not chosen:
        raise CommandError("--verbose needs --members, --offsets or --state", ExitCode.USAGE)
    return chosen[0] if chosen else View.ALL


def _compute_view(
    groups: Sequence[admin_pb2.Group], view: View, verbose: bool, server: str
) -> Listing:
    match view:
        case View.MEMBERS:
            return compute_members(groups, verbose)
        case View.STATE:
            return compute_states(groups, server, verbose)
        case _:
            return compute_descriptions(groups)
