"""`muster group reset` and `seek`: set committed offsets."""

from __future__ import annotations

import csv
import sys
import uuid
from typing import TYPE_CHECKING, Annotated

import typer

from cli.admin.resets.reset_options import (
    AllTopicsOption,
    ClampOption,
    CreateOption,
    CurrentOption,
    DatetimeOption,
    DurationOption,
    EarliestOption,
    ExportOption,
    FileOption,
    GroupArgument,
    LatestOption,
    OffsetOption,
    OtherGroupOption,
    PastOption,
    ShiftOption,
    TopicsOption,
)
from cli.admin.resets.reset_positions import fill_position, read_plan
from cli.asking import ask
from cli.errors import CommandError, ExitCode, usage_errors
from cli.log.as_of_option import read_wall_ms
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

if TYPE_CHECKING:
    from cli.admin.resets.reset_client import ResetClient
    from muster.v1 import reset_pb2

COLUMNS = (
    "GROUP",
    "TOPIC",
    "PARTITION",
    "NEW-OFFSET",
    "CURRENT-OFFSET",
    "LOG-START-OFFSET",
    "LOG-END-OFFSET",
    "CLAMPED",
)


def reset(
    *,
    group: GroupArgument,
    topics: TopicsOption = None,
    all_topics: AllTopicsOption = False,
    to_earliest: EarliestOption = False,
    to_latest: LatestOption = False,
    to_current: CurrentOption = False,
    to_datetime: DatetimeOption = None,
    by_duration: DurationOption = None,
    shift_by: ShiftOption = None,
    to_offset: OffsetOption = None,
    from_file: FileOption = None,
    to_group: OtherGroupOption = None,
    to_as_of: PastOption = None,
    clamp: ClampOption = False,
    create: CreateOption = False,
    export: ExportOption = False,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    quiet: QuietOption = False,
    output: OutputOption = Format.TABLE,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Set the committed offsets of a group, as kafka-consumer-groups.sh --reset-offsets does."""
    from cli.admin.resets.reset_client import connect_for_resets
    from muster.v1 import reset_pb2
    from wording.resets import Strategy, add_topics

    request = reset_pb2.ResetOffsetsRequest(group_id=group, clamp=clamp, create_group=create)
    strategy = Strategy(
        to_earliest,
        to_latest,
        to_current,
        to_datetime,
        by_duration,
        shift_by,
        to_offset,
        None if from_file is None else read_plan(from_file),
        to_group,
        to_as_of,
    )
    with usage_errors():
        strategy.fill(request, read_wall_ms)
    has_own = any(given is not None for given in (from_file, to_group, to_as_of))
    if bool(topics) + all_topics != 1 and not (has_own and not topics):
        raise CommandError(
            "say which offsets: --topic TOPIC[:0,1], or --all-topics for all that are committed",
            ExitCode.USAGE,
        )
    with usage_errors():
        add_topics(request, topics or ())
    with connect_for_resets(server, timeout, command_config) as client:
        _carry_out(client, request, output, yes=yes, dry_run=dry_run, quiet=quiet, export=export)


def seek(
    *,
    group: GroupArgument,
    partition: Annotated[
        str, typer.Argument(metavar="TOPIC[:P,P]", help="A topic, or some of its partitions.")
    ],
    to: Annotated[
        str,
        typer.Option(
            "--to", metavar="POSITION", help="start, end, N, +N, -N, or @ and a time or an age."
        ),
    ],
    clamp: ClampOption = False,
    create: CreateOption = False,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    quiet: QuietOption = False,
    output: OutputOption = Format.TABLE,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Set the committed offset of a partition or a topic: `reset` in short."""
    from cli.admin.resets.reset_client import connect_for_resets
    from muster.v1 import reset_pb2
    from wording.resets import add_topics

    request = reset_pb2.ResetOffsetsRequest(group_id=group, clamp=clamp, create_group=create)
    fill_position(request, to, read_wall_ms)
    with usage_errors():
        add_topics(request, (partition,))
    with connect_for_resets(server, timeout, command_config) as client:
        _carry_out(client, request, output, yes=yes, dry_run=dry_run, quiet=quiet)


def _carry_out(
    client: ResetClient,
    request: reset_pb2.ResetOffsetsRequest,
    output: Format,
    *,
    yes: bool,
    dry_run: bool,
    quiet: bool,
    export: bool = False,
) -> None:
    """Show what would change, ask, and set exactly what was shown."""
    from wording.resets import make_second_request

    request.validate_only = True
    shown = client.reset_offsets(request)
    if not dry_run and not yes:
        rows = [row[1:] for row in _compute_rows(request.group_id, shown)]
        ask(COLUMNS[1:], rows, _describe_effect(request.group_id, shown))
    if not dry_run:
        shown = client.reset_offsets(make_second_request(request, shown, make_request_id()))
        if shown.live:
            client.wait_until_set(request.group_id, shown.group_epoch)
    if export:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerows(
            (row.topic_name, row.partition, row.offset_after) for row in shown.partitions
        )
    else:
        print_listing(compute_listing(request.group_id, shown), output)
    if not quiet:
        count = len(shown.partitions)
        print_note(f"would be set: {count}" if dry_run else f"set: {count}")


def _describe_effect(group_id: str, shown: reset_pb2.ResetOffsetsResponse) -> str:
    effect = f"These offsets of {group_id} will be set"
    if shown.live:
        return f"{effect}, once its members have given up these partitions; then they get them."
    return f"{effect}."


def make_request_id() -> str:
    """An id by which the server knows a request that comes again."""
    return str(uuid.uuid4())


def _compute_rows(group_id: str, response: reset_pb2.ResetOffsetsResponse) -> list[list[object]]:
    return [
        [
            group_id,
            row.topic_name,
            row.partition,
            row.offset_after,
            row.offset_before if row.HasField("offset_before") else None,
            row.start_offset if row.HasField("start_offset") else None,
            row.end_offset if row.HasField("end_offset") else None,
            "yes" if row.clamped else None,
        ]
        for row in response.partitions
    ]


def compute_listing(group_id: str, response: reset_pb2.ResetOffsetsResponse) -> Listing:
    """The offsets that were set, or would be; Kafka's columns first."""
    rows = _compute_rows(group_id, response)
    names = [column.lower().replace("-", "_") for column in COLUMNS[1:]]
    items = [dict(zip(names, row[1:], strict=True)) for row in rows]
    content = {"group_id": group_id, "offsets": items}
    return Listing("group.reset", COLUMNS, rows, content, "offsets")
