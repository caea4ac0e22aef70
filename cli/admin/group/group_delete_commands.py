"""`muster group delete` and `delete-offsets`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Final

import typer

from cli.asking import ask, raise_failures
from cli.completion.names import complete_groups
from cli.errors import CommandError, ExitCode, usage_errors
from cli.options import (
    DEFAULT_SERVER,
    DEFAULT_TIMEOUT,
    CommandConfigOption,
    DryRunOption,
    QuietOption,
    ServerOption,
    TimeoutOption,
    YesOption,
)
from cli.output import print_note
from wording.partitions import parse_partitions

if TYPE_CHECKING:
    from cli.admin_client import AdminClient
    from muster.v1 import group_pb2

Partitions = dict[str, list[int]]

MEMBERS: Final = "`muster group describe` shows them"


def delete(
    groups: Annotated[
        list[str],
        typer.Argument(
            metavar="GROUP...", help="Ids of the groups.", autocompletion=complete_groups
        ),
    ],
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    quiet: QuietOption = False,
    *,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Delete empty groups and all their offsets, including those of open transactions."""
    from cli.admin_client import connect

    names = list(dict.fromkeys(groups))
    with connect(server, timeout, command_config) as client:
        if not yes and not dry_run:
            rows = [[name, _count(client, name)] for name in names]
            ask(["GROUP", "#OFFSETS"], rows, "The groups and all their offsets will be deleted.")
        failed = []
        for name in names:
            try:
                client.delete_group(name, dry_run)
            except CommandError as error:
                if error.exit_code is ExitCode.UNREACHABLE:
                    raise
                message = error.message
                if message.startswith("NON_EMPTY_GROUP"):
                    message = f"{message.rstrip('.')}: its members have to leave first ({MEMBERS})"
                failed.append(CommandError(f"{name}: {message}", error.exit_code))
    _report(len(names) - len(failed), dry_run, quiet)
    raise_failures(failed)


def _count(client: AdminClient, group_id: str) -> int:
    offsets = client.fetch_offsets(group_id, False)
    return sum(len(partitions) for partitions in _list_committed(offsets).values())


def _list_committed(response: group_pb2.FetchOffsetsResponse) -> Partitions:
    return {
        topic.topic_name: [row.partition for row in topic.partitions] for topic in response.topics
    }


def _report(count: int, dry_run: bool, quiet: bool) -> None:
    if count and not quiet:
        print_note(f"would be deleted: {count}" if dry_run else f"deleted: {count}")


def delete_offsets(
    *,
    group: Annotated[str, typer.Argument(help="Id of the group.")],
    topics: Annotated[
        list[str],
        typer.Option(
            "--topic", metavar="TOPIC[:P,P]", help="A topic, or some of its partitions. Repeatable."
        ),
    ],
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    quiet: QuietOption = False,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Delete committed offsets of topics that no member of the group subscribes to."""
    from cli.admin_client import connect

    with usage_errors():
        asked = parse_partitions(topics)
    with connect(server, timeout, command_config) as client:
        chosen = _choose(asked, _list_committed(client.fetch_offsets(group, False)))
        if not yes and not dry_run:
            rows = [[group, name, partition] for name, row in chosen.items() for partition in row]
            effect = (
                f"These offsets of {group} will be deleted: consumers will start there by their "
                "auto.offset.reset."
            )
            ask(["GROUP", "TOPIC", "PARTITION"], rows, effect)
        failures = client.delete_offsets(group, chosen, dry_run)
    failed = [
        CommandError(
            f"{topic.topic_name}-{row.partition}: {row.error.reason}: {row.error.error_message}",
            ExitCode.NOT_FOUND
            if row.error.reason == "UNKNOWN_TOPIC_OR_PARTITION"
            else ExitCode.PRECONDITION,
        )
        for topic in failures
        for row in topic.partitions
    ]
    _report(sum(map(len, chosen.values())) - len(failed), dry_run, quiet)
    failed += (
        CommandError(f"{group} has no committed offsets for {name}", ExitCode.NOT_FOUND)
        for name, partitions in chosen.items()
        if not partitions
    )
    raise_failures(failed)


def _choose(asked: Mapping[str, list[int] | None], committed: Partitions) -> Partitions:
    """Replace "all partitions" of a topic by its partitions with a committed offset."""
    return {
        name: committed.get(name, []) if partitions is None else partitions
        for name, partitions in asked.items()
    }
