"""`muster topic report-end`: where partitions end whose records are elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from cli.asking import raise_failures
from cli.completion.names import complete_topics
from cli.errors import CommandError, ExitCode, usage_errors
from cli.options import (
    DEFAULT_SERVER,
    DEFAULT_TIMEOUT,
    CommandConfigOption,
    OutputOption,
    QuietOption,
    ServerOption,
    TimeoutOption,
)
from cli.output import Format, Listing, print_listing, print_note
from wording.partitions import parse_ends

if TYPE_CHECKING:
    from muster.v1 import types_pb2

PARTITIONS_AT_ONCE = 10_000
"""The server takes so many in one report."""
_EXIT_CODES = {
    "UNKNOWN_TOPIC_OR_PARTITION": ExitCode.NOT_FOUND,
    "POLICY_VIOLATION": ExitCode.PRECONDITION,
}


def report_end(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="The name of a topic.", autocompletion=complete_topics),
    ],
    given: Annotated[
        list[str],
        typer.Argument(
            metavar="PARTITION=OFFSET...", help="The offset after the last record, such as 0=1042."
        ),
    ],
    quiet: QuietOption = False,
    output: OutputOption = Format.TABLE,
    *,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Tell where partitions end whose records are elsewhere, for the lag of groups."""
    from cli.admin_client import connect

    with usage_errors():
        ends = parse_ends(given)
    rows = list(ends.items())
    failed: dict[int, types_pb2.Error] = {}
    max_age_ms = 0
    with connect(server, timeout, command_config) as client:
        for begin in range(0, len(rows), PARTITIONS_AT_ONCE):
            some = dict(rows[begin : begin + PARTITIONS_AT_ONCE])
            answer = client.report_end_offsets(name, some)
            if answer.HasField("error"):
                raise _compute_error(name, answer.error)
            max_age_ms = answer.max_age_ms
            failed.update(
                (each.partition, each.error)
                for topic in answer.failures
                for each in topic.partitions
            )
    taken = {partition: end for partition, end in rows if partition not in failed}
    if taken or output is not Format.TABLE:
        print_listing(compute_reported(name, taken), output)
    if taken and not quiet:
        print_note(f"reported: {len(taken)}, believed for {max_age_ms / 1_000:g} s")
    raise_failures([_compute_error(f"{name}-{each}", error) for each, error in failed.items()])


def compute_reported(name: str, ends: Mapping[int, int]) -> Listing:
    """A row for each partition."""
    rows: list[list[object]] = [[name, partition, end] for partition, end in ends.items()]
    items = [
        {"topic": name, "partition": partition, "end_offset": end}
        for partition, end in ends.items()
    ]
    columns = ["TOPIC", "PARTITION", "LOG-END-OFFSET"]
    return Listing("topic.report-end", columns, rows, {"partitions": items}, "partitions")


def _compute_error(what: str, error: types_pb2.Error) -> CommandError:
    cause = f"{error.reason}: {error.error_message}".removesuffix(": ")
    return CommandError(f"{what}: {cause}", _EXIT_CODES.get(error.reason, ExitCode.FAILED))
