"""`muster whatif`: what a change would do to a group, before it is made."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.admin.group.group_renders import GroupArgument
from cli.errors import CommandError, ExitCode
from cli.options import (
    DEFAULT_SERVER,
    DEFAULT_TIMEOUT,
    CommandConfigOption,
    OutputOption,
    ServerOption,
    TimeoutOption,
)
from cli.output import Format, print_listing, print_table
from wording.topics import TopicSpecError, merge_topics, parse_topic

if TYPE_CHECKING:
    from muster.v1 import what_if_pb2


def whatif(
    *,
    group: GroupArgument,
    add: Annotated[
        int, typer.Option("--add", min=0, metavar="N", help="So many members join.")
    ] = 0,
    remove: Annotated[
        list[str] | None,
        typer.Option("--remove", metavar="MEMBER", help="A member leaves: by id or instance id."),
    ] = None,
    partitions: Annotated[
        list[str] | None,
        typer.Option("--partitions", metavar="TOPIC=N", help="A topic grows to N partitions."),
    ] = None,
    assignor: Annotated[
        str, typer.Option("--assignor", metavar="NAME", help="Another assignor.")
    ] = "",
    weights: Annotated[
        Path | None,
        typer.Option(
            "--weights",
            metavar="FILE",
            help="Other partition weights: TOPIC:P=W a line, or CSV of `muster config weigh`.",
        ),
    ] = None,
    protocol: Annotated[
        str,
        typer.Option(
            "--protocol", metavar="consumer|classic", help="All members use this group protocol."
        ),
    ] = "",
    resume: Annotated[
        bool, typer.Option("--resume", help="Rebalancing of a frozen group is resumed.")
    ] = False,
    output: OutputOption = Format.TABLE,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Show what changes would move in a consumer group; nothing is changed."""
    from cli.admin.whatif.whatif_listing import (
        MEMBER_COLUMNS,
        compute_listing,
        compute_member_rows,
    )
    from muster.v1 import what_if_pb2

    request = what_if_pb2.WhatIfRequest(
        group_id=group,
        add=add,
        remove=remove or (),
        assignor=assignor,
        protocol=protocol,
        resume=resume,
    )
    _fill_growths(request, partitions or ())
    if weights is not None:
        from cli.admin.whatif.weights_file import read_weights

        request.weights.entries.extend(read_weights(weights))
        request.weights.SetInParent()
    found = _ask(request, server, timeout, command_config)
    print_listing(compute_listing(group, found, protocol), output)
    if output in (Format.TABLE, Format.WIDE):
        print()
        print_table(MEMBER_COLUMNS, compute_member_rows(found))


def _fill_growths(request: what_if_pb2.WhatIfRequest, texts: Sequence[str]) -> None:
    try:
        for spec in merge_topics(map(parse_topic, texts)):
            request.partitions.add(topic_name=spec.name, num_partitions=spec.partitions)
    except TopicSpecError as error:
        raise CommandError(f"--partitions: {error}", ExitCode.USAGE) from error


def _ask(
    request: what_if_pb2.WhatIfRequest, server: str, timeout_s: float, command_config: Path | None
) -> what_if_pb2.WhatIfResponse:
    from cli.server_calls import open_calls
    from muster.v1 import what_if_pb2_grpc

    with open_calls(server, timeout_s, command_config) as calls:
        stub = what_if_pb2_grpc.WhatIfServiceStub(calls.channel)
        try:
            return calls.call(stub.WhatIf, request)
        except CommandError as error:
            if not error.message.startswith("UNKNOWN_MEMBER_ID"):
                raise
            who = f"`muster group describe {request.group_id}` shows the members"
            message = f"{error.message.rstrip('.')}: {who}"
            raise CommandError(message, error.exit_code) from error
