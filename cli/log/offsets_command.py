"""`muster log offsets`: the committed offsets of a group, read without its coordinator."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.errors import CommandError, ExitCode
from cli.log.log_sources import LogSource, StoreSource, open_source
from cli.options import (
    DEFAULT_TIMEOUT,
    DryRunOption,
    QuietOption,
    TimeoutOption,
    YesOption,
)
from cli.output import Format, Listing, print_listing, print_note, print_table
from model.ids import GroupId, LogPartition, compute_log_partition

if TYPE_CHECKING:
    from cli.log.cluster import Cluster
    from storage.log.group_offsets import GroupOffset

COLUMNS = (
    "GROUP",
    "TOPIC",
    "PARTITION",
    "CURRENT-OFFSET",
    "LEADER-EPOCH",
    "COMMITTED-AT",
    "METADATA",
)


GroupOption = Annotated[str, typer.Option("--group", metavar="G", help="Id of the group.")]
PathArgument = Annotated[
    Path | None,
    typer.Argument(metavar="PATH", help="A data folder, a folder of segments, or one .log."),
]
BootstrapOption = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server",
        metavar="HOST:PORT",
        help="Read the topic __consumer_offsets of this cluster instead of PATH.",
    ),
]
UndecidedOption = Annotated[
    bool,
    typer.Option(
        "--include-undecided",
        help="With --bootstrap-server: also count commits after the start of an open transaction.",
    ),
]
CommitToOption = Annotated[
    str | None,
    typer.Option(
        "--commit-to", metavar="HOST:PORT/GROUP", help="Commit the offsets there; asks first."
    ),
]
WithoutMetadataOption = Annotated[
    bool, typer.Option("--without-metadata", help="Commit the offsets without their metadata.")
]
CommandConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--command-config",
        metavar="FILE",
        help="librdkafka settings for the clusters, such as security, as a .properties file.",
    ),
]


def offsets(
    *,
    group: GroupOption,
    path: PathArgument = None,
    output: Annotated[
        Format,
        typer.Option("--output", "-o", metavar="table|csv|json", help="Output format."),
    ] = Format.TABLE,
    bootstrap_server: BootstrapOption = None,
    include_undecided: UndecidedOption = False,
    commit_to: CommitToOption = None,
    without_metadata: WithoutMetadataOption = False,
    command_config: CommandConfigOption = None,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    quiet: QuietOption = False,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Print the committed offsets of a group, read from the log itself.

    `kafka-consumer-groups --reset-offsets --from-file` accepts the CSV.
    """
    if (path is None) == (bootstrap_server is None):
        raise CommandError("give either PATH or --bootstrap-server", ExitCode.USAGE)
    _check_output(output)
    group_id = GroupId(group)
    target = None if commit_to is None else _connect_to_target(commit_to, command_config, timeout)
    if path is not None:
        with open_source(path) as source:
            found = read_offsets(source, group_id, path)
    else:
        found = _read_cluster(
            bootstrap_server or "", command_config, timeout, group_id, include_undecided
        )
    if not quiet or target is None:
        print_offsets(group, found, output)
    if target is None:
        return
    if not yes or dry_run:
        _preview(*target, found)
    if dry_run:
        print_note(f"would be committed: {len(found)}")
        return
    if not yes:
        _ask()
    cluster, target_id = target
    cluster.commit(target_id, found, with_metadata=not without_metadata)
    if not quiet:
        print_note(f"committed: {len(found)}")


def read_offsets(source: LogSource, group_id: GroupId, path: Path) -> list[GroupOffset]:
    """Read the committed offsets of a group from a store or from segments.

    Reads the partition that the group hashes to first. The topic of the segments may have more
    partitions than are present, so all of them are searched next. Raises ``CommandError``: 3 if
    there are no offsets, 1 if they are in several partitions.
    """
    if isinstance(source, StoreSource):
        found = _read_store(source, group_id)
    else:
        for note in source.notes:
            print_note(note)
        found = _read_segments(source, group_id)
    if not found:
        raise CommandError(
            f"{path} holds no committed offsets of group {group_id}", ExitCode.NOT_FOUND
        )
    return found


def _read_store(source: StoreSource, group_id: GroupId) -> list[GroupOffset]:
    from storage.log.group_offsets import compute_group_offsets, compute_offset_prefix

    partition = compute_log_partition(group_id, source.partition_count)
    return compute_group_offsets(source.latest(partition, compute_offset_prefix(group_id)))


def _read_segments(source: LogSource, group_id: GroupId) -> list[GroupOffset]:
    expected = compute_log_partition(group_id, source.partition_count)
    if expected in source.partitions and (found := _fold(source, expected, group_id)):
        return found
    elsewhere = {
        partition: found
        for partition in source.partitions
        if partition != expected and (found := _fold(source, partition, group_id))
    }
    if len(elsewhere) > 1:
        where = ", ".join(map(str, elsewhere))
        raise CommandError(
            f"group {group_id} has offsets in partitions {where}, which seem to come from topics "
            "with different partition counts: name the folder of one partition"
        )
    return next(iter(elsewhere.values()), [])


def _fold(source: LogSource, partition: LogPartition, group_id: GroupId) -> list[GroupOffset]:
    from storage.log.group_offsets import GroupOffsetsFold
    from storage.segments.errors import TornTail

    fold = GroupOffsetsFold(group_id)
    try:
        for batch in source.read(partition):
            fold.apply(batch.data)
    except TornTail as error:
        print_note(str(error))
    if fold.pending_count:
        print_note(
            f"{fold.pending_count} offsets of group {group_id} belong to open transactions and "
            "are left out"
        )
    return fold.compute_offsets()


def _read_cluster(
    bootstrap: str, config: Path | None, timeout: float, group_id: GroupId, undecided: bool
) -> list[GroupOffset]:
    from cli.log.cluster import Cluster

    cluster = Cluster(bootstrap, config, timeout)
    found = cluster.read_offsets(group_id, include_undecided=undecided)
    if found.left_out:
        print_note(
            f"partition {found.log_partition} has an open transaction since offset "
            f"{found.stable_offset}; the {found.left_out} records of group {group_id} after it may "
            "belong to that transaction, so they are left out; "
            "--include-undecided counts them"
        )
    if not found.offsets:
        raise CommandError(
            f"{bootstrap} holds no committed offsets of group {group_id}", ExitCode.NOT_FOUND
        )
    return found.offsets


# ------------------------------------------------------------------------------------- printing


def _check_output(output: Format) -> None:
    if output not in (Format.TABLE, Format.CSV, Format.JSON):
        raise CommandError("offsets can be printed with -o table, csv or json", ExitCode.USAGE)


def print_offsets(group: str, found: Sequence[GroupOffset], output: Format) -> None:
    """Print offsets; the CSV has no header and no group, as Kafka's tool expects."""
    if output is Format.CSV:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerows((each.topic, each.partition, each.offset) for each in found)
        return
    print_listing(compute_listing(group, found), output)


def compute_listing(group: str, found: Sequence[GroupOffset]) -> Listing:
    """The offsets as a table and as JSON."""
    from cli.messages import render_topic_id
    from model.ids import ZERO_TOPIC_ID
    from wording.times import render_time

    rows = [
        [
            group,
            each.topic,
            each.partition,
            each.offset,
            None if each.leader_epoch < 0 else each.leader_epoch,
            render_time(each.commit_timestamp),
            render_text(each.metadata),
        ]
        for each in found
    ]
    items = [
        {
            "topic": each.topic,
            "partition": each.partition,
            "offset": each.offset,
            "leader_epoch": each.leader_epoch,
            "metadata": each.metadata,
            "commit_timestamp_ms": each.commit_timestamp,
            "expire_timestamp_ms": None if each.expire_timestamp < 0 else each.expire_timestamp,
            "topic_id": None if each.topic_id == ZERO_TOPIC_ID else render_topic_id(each.topic_id),
            "log_offset": each.log_offset,
        }
        for each in found
    ]
    content = {"group_id": group, "offsets": items}
    return Listing("log.offsets", COLUMNS, rows, content, "offsets")


def render_text(text: str) -> str:
    """Escape unprintable characters. Python's Kafka clients end their metadata with a NUL."""
    if text.isprintable():
        return text
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text
    )


# ------------------------------------------------------------------------------------- committing


def _connect_to_target(text: str, config: Path | None, timeout: float) -> tuple[Cluster, GroupId]:
    bootstrap, slash, group = text.partition("/")
    if not slash or not group or ":" not in bootstrap or not _is_unicode(text):
        raise CommandError(f"--commit-to {text!r} is not HOST:PORT/GROUP", ExitCode.USAGE)
    from cli.log.cluster import Cluster

    return Cluster(bootstrap, config, timeout), GroupId(group)


def _is_unicode(text: str) -> bool:
    """Whether an argument was valid UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _preview(cluster: Cluster, group_id: GroupId, found: Sequence[GroupOffset]) -> None:
    """Show on standard error the offsets that the group has there and those it would have."""
    before = cluster.list_offsets(group_id)
    rows = [
        [
            group_id,
            each.topic,
            each.partition,
            before.get((each.topic, each.partition)),
            each.offset,
        ]
        for each in found
    ]
    print_table(["GROUP", "TOPIC", "PARTITION", "OFFSET", "AFTER"], rows, sys.stderr)


def _ask() -> None:
    if not sys.stdin.isatty():
        raise CommandError(
            "cannot ask for confirmation, standard input is not a terminal: add --yes",
            ExitCode.USAGE,
        )
    if not typer.confirm("Continue?", err=True):
        raise CommandError("nothing was changed")
