"""`muster txn`: transactions with pending offsets whose end may never arrive.

Muster does not coordinate transactions. The coordinator of an imported open transaction does not
know this server, so a user ends the transaction here, or it is aborted when it times out.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.asking import ask, raise_failures
from cli.errors import CommandError, ExitCode
from cli.options import (
    DEFAULT_SERVER,
    DEFAULT_TIMEOUT,
    CommandConfigOption,
    OutputOption,
    QuietOption,
    ServerOption,
    TimeoutOption,
    YesOption,
)
from cli.output import Format, Listing, print_listing, print_note
from wording.times import render_time

if TYPE_CHECKING:
    from muster.v1 import admin_pb2

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="List and end open transactions, such as those of an imported log.",
)

ProducerArgument = Annotated[
    int, typer.Argument(metavar="PRODUCER-ID", help="Producer id, as listed.", min=0)
]
PartitionOption = Annotated[
    int | None,
    typer.Option("--partition", help="Only in this partition of the log; by default in all."),
]

COLUMNS = (
    "PRODUCER-ID",
    "EPOCH",
    "LOG-PARTITION",
    "SINCE",
    "GROUP",
    "#OFFSETS",
    "TIMES-OUT",
    "OFFSETS",
)


@app.command("list")
def list_transactions(
    output: OutputOption = Format.TABLE,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """List open transactions and their pending offsets, by group."""
    from cli.admin_client import connect

    with connect(server, timeout, command_config) as client:
        found = client.list_transactions()
    print_listing(compute_listing(found), output)


@app.command()
def abort(
    producer_id: ProducerArgument,
    partition: PartitionOption = None,
    yes: YesOption = False,
    quiet: QuietOption = False,
    *,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Abort a producer's transaction and drop its pending offsets."""
    _end(
        producer_id,
        partition,
        is_commit=False,
        yes=yes,
        quiet=quiet,
        server=server,
        command_config=command_config,
        timeout=timeout,
    )


@app.command()
def commit(
    producer_id: ProducerArgument,
    partition: PartitionOption = None,
    yes: YesOption = False,
    quiet: QuietOption = False,
    *,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Commit a producer's transaction: its pending offsets become committed offsets."""
    _end(
        producer_id,
        partition,
        is_commit=True,
        yes=yes,
        quiet=quiet,
        server=server,
        command_config=command_config,
        timeout=timeout,
    )


def _end(
    producer_id: int,
    partition: int | None,
    *,
    is_commit: bool,
    yes: bool,
    quiet: bool,
    server: str,
    command_config: Path | None,
    timeout: float,
) -> None:
    from cli.admin_client import connect

    with connect(server, timeout, command_config) as client:
        chosen = [
            transaction
            for transaction in client.list_transactions()
            if transaction.producer_id == producer_id
            and partition in (None, transaction.log_partition)
        ]
        if not chosen:
            where = "" if partition is None else f" in partition {partition}"
            raise CommandError(
                f"producer {producer_id} has no open transaction{where}", ExitCode.NOT_FOUND
            )
        if not yes:
            ask(COLUMNS, compute_listing(chosen).rows, render_effect(chosen, is_commit))
        failed = []
        for transaction in chosen:
            try:
                client.end_transaction(transaction, is_commit)
            except CommandError as error:
                if error.exit_code is ExitCode.UNREACHABLE:
                    raise
                place = f"partition {transaction.log_partition}"
                failed.append(CommandError(f"{place}: {error.message}", error.exit_code))
    done = len(chosen) - len(failed)
    if done and not quiet:
        print_note(f"{'committed' if is_commit else 'aborted'} in log partitions: {done}")
    raise_failures(failed)


def render_effect(transactions: Sequence[admin_pb2.Transaction], is_commit: bool) -> str:
    """What ending the transactions will do, in one line."""
    offsets = [waiting for listed in transactions for waiting in listed.offsets]
    groups = len({waiting.group_id for waiting in offsets})
    becomes = "will be committed" if is_commit else "will be dropped"
    return (
        f"{'Commit' if is_commit else 'Abort'} the transaction of producer "
        f"{transactions[0].producer_id}: {len(offsets)} offsets of {groups} groups {becomes}."
    )


def compute_listing(transactions: Sequence[admin_pb2.Transaction]) -> Listing:
    """A row for each group with pending offsets in a transaction."""
    from google.protobuf.json_format import MessageToDict

    rows: list[list[object]] = []
    for listed in transactions:
        groups: dict[str, list[admin_pb2.PendingOffset]] = {}
        for waiting in listed.offsets:
            groups.setdefault(waiting.group_id, []).append(waiting)
        rows += [
            [
                listed.producer_id,
                listed.producer_epoch,
                listed.log_partition,
                render_time(listed.since_ms),
                group_id,
                len(offsets),
                render_time(listed.times_out_at_ms),
                " ".join(f"{row.topic_name}-{row.partition}={row.offset}" for row in offsets),
            ]
            for group_id, offsets in groups.items()
        ]
    items = [
        MessageToDict(
            listed, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
        )
        for listed in transactions
    ]
    content = {"transactions": items}
    return Listing("txn.list", COLUMNS, rows, content, "transactions", wide_columns=1)
