"""`muster group offsets`, and `muster group describe --offsets`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from cli.admin.group.group_renders import GroupArgument, add_position
from cli.admin.group.group_selection import read_each
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
from cli.output import Format, Listing, print_listing, print_note
from wording.lag import compute_lag

if TYPE_CHECKING:
    from cli.admin_client import AdminClient
    from muster.v1 import admin_pb2, types_pb2


class GroupOffsets(NamedTuple):
    """The offsets of a group; ``group`` is ``None`` if nothing is known of its members."""

    group_id: str
    topics: Sequence[types_pb2.CommittedTopic]
    group: admin_pb2.Group | None


def offsets(
    group: GroupArgument,
    require_stable: Annotated[
        bool,
        typer.Option(
            "--require-stable", help="Omit the offset of a partition with an open transaction."
        ),
    ] = False,
    as_of: AsOfOption = None,
    output: OutputOption = Format.TABLE,
    *,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Show the committed offsets of a group, its lag, and the owners of the partitions."""
    from cli.admin_client import connect

    position = parse_as_of_option(as_of)
    with connect(server, timeout, command_config) as client:
        if position is not None:
            past = client.fetch_offsets(group, require_stable, position)
            if not past.topics:
                # FetchOffsets answers for an unknown group too, with no offsets; this call fails.
                client.describe_group(group, position)
            found = GroupOffsets(group, past.topics, None)
            print_listing(add_position(compute_offsets(found), past), output)
            return
        print_listing(compute_offsets(_read_committed(client, group, require_stable)), output)


def list_offsets_of(
    client: AdminClient, group_ids: Sequence[str], sought: bool, verbose: bool, output: Format
) -> list[CommandError]:
    """Print the offsets of several groups in one table; return the errors of the others."""
    found, failed = read_each(
        group_ids, lambda group_id: _read_with_owned(client, group_id), sought
    )
    if found or sought:
        print_listing(compute_all_offsets(found, verbose), output)
    return failed


def _read_committed(client: AdminClient, group_id: str, require_stable: bool) -> GroupOffsets:
    response = client.fetch_offsets(group_id, require_stable)
    try:
        group = client.describe_group(group_id).group
    except CommandError as error:
        # Groups of some types, and groups with topics that are not the caller's to see, have
        # offsets, but no description.
        if not response.topics or error.exit_code is ExitCode.UNREACHABLE:
            raise
        print_note(f"{group_id}: owners of partitions are not known: {error.message}")
        return GroupOffsets(group_id, response.topics, None)
    if not group.members:
        print_note(f"Group {group_id} has no active members.")
    return GroupOffsets(group_id, response.topics, group)


def _read_with_owned(client: AdminClient, group_id: str) -> GroupOffsets:
    """Also partitions that a member owns without an offset, as in Kafka's tool."""
    found = _read_committed(client, group_id, False)
    missing = _find_uncommitted(found)
    if not missing:
        return found
    more = client.fetch_offsets(group_id, False, partitions=missing)
    return found._replace(topics=[*found.topics, *more.topics])


def _find_uncommitted(found: GroupOffsets) -> dict[str, list[int]]:
    committed = {
        (topic.topic_name, row.partition) for topic in found.topics for row in topic.partitions
    }
    missing: dict[str, list[int]] = {}
    for name, partition in _find_owners(found.group):
        if (name, partition) not in committed:
            missing.setdefault(name, []).append(partition)
    return missing


def _find_owners(group: admin_pb2.Group | None) -> Mapping[tuple[str, int], admin_pb2.GroupMember]:
    """The members by what they own. A topic without a name is deleted."""
    return {
        (topic.topic_name, partition): member
        for member in (group.members if group is not None else ())
        for topic in member.assignment
        for partition in topic.partitions
        if topic.topic_name
    }


KAFKA_COLUMNS = (
    "GROUP",
    "TOPIC",
    "PARTITION",
    "CURRENT-OFFSET",
    "LOG-END-OFFSET",
    "LAG",
    "CONSUMER-ID",
    "HOST",
    "CLIENT-ID",
)
_FIELDS = (
    "group_id",
    "topic",
    "partition",
    "offset",
    "end_offset",
    "lag",
    "member_id",
    "client_host",
    "client_id",
    "leader_epoch",
    "lag_seconds",
    "metadata",
    "error",
)
_LEADER_EPOCH = _FIELDS.index("leader_epoch")


def compute_offsets(found: GroupOffsets) -> Listing:
    """Offsets, lag and owner by topic and partition.

    An error takes the place of an offset that is not known. The lag is not known without both the
    committed offset and the end, and its seconds not without looks at the end before.
    """
    rows = _compute_rows(found)
    columns = [*KAFKA_COLUMNS, "LEADER-EPOCH", "LAG-SECONDS", "METADATA", "ERROR"]
    items = [dict(zip(_FIELDS[1:], row[1:], strict=True)) for row in rows]
    content = {"group_id": found.group_id, "offsets": items}
    return Listing("group.offsets", columns, rows, content, "offsets")


def compute_all_offsets(groups: Sequence[GroupOffsets], verbose: bool) -> Listing:
    """The same of several groups; LEADER-EPOCH is where Kafka's tool has it with `--verbose`."""
    rows = [row for found in groups for row in _compute_rows(found)]
    items = [dict(zip(_FIELDS, row, strict=True)) for row in rows]
    columns = list(KAFKA_COLUMNS)
    for row in rows:
        epoch = row.pop(_LEADER_EPOCH)
        if verbose:
            row.insert(3, epoch)
    if verbose:
        columns.insert(3, "LEADER-EPOCH")
    columns += ["LAG-SECONDS", "METADATA", "ERROR"]
    content = {"offsets": items}
    return Listing("group.describe.offsets", columns, rows, content, "offsets")


def _compute_rows(found: GroupOffsets) -> list[list[object]]:
    from cli.log.offsets_command import render_text

    owners = _find_owners(found.group)
    rows: list[list[object]] = []
    for topic in found.topics:
        for row in topic.partitions:
            owner = owners.get((topic.topic_name, row.partition))
            rows.append(
                [
                    found.group_id,
                    topic.topic_name,
                    row.partition,
                    row.offset if row.HasField("offset") else None,
                    row.end_offset if row.HasField("end_offset") else None,
                    compute_lag(row),
                    None if owner is None else owner.member_id,
                    None if owner is None else owner.client_host,
                    None if owner is None else owner.client_id,
                    row.leader_epoch if row.HasField("leader_epoch") else None,
                    round(row.lag_ms / 1_000, 1) if row.HasField("lag_ms") else None,
                    render_text(row.metadata),
                    row.error.reason,
                ]
            )
    return sorted(rows, key=lambda row: row[1:3])
