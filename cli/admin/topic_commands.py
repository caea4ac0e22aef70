"""`muster topic`: the topics of the server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.admin.end_report_command import report_end
from cli.admin.topic_racks import parse_racks, read_racks_file, render_racks
from cli.asking import ask, raise_failures
from cli.completion.names import complete_topics
from cli.errors import CommandError, ExitCode
from cli.messages import render_topic_id
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
from wording.topics import Racks, TopicSpec, TopicSpecError, merge_topics, parse_topic

if TYPE_CHECKING:
    from cli.admin_client import AdminClient
    from muster.v1 import admin_pb2

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="List, create, grow and delete topics."
)

TopicsArgument = Annotated[
    list[str], typer.Argument(metavar="NAME=PARTITIONS...", help="Topics, such as orders=12.")
]
PatternArgument = Annotated[
    str, typer.Argument(metavar="REGEX", help="A regular expression in RE2's syntax.")
]
NamesArgument = Annotated[
    list[str],
    typer.Argument(metavar="NAME...", help="Names of topics.", autocompletion=complete_topics),
]


@app.command("list")
def list_topics(
    output: OutputOption = Format.TABLE,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """List topics with their partition counts and ids."""
    from cli.admin_client import connect

    with connect(server, timeout, command_config) as client:
        topics = client.list_topics()
    print_listing(compute_listing("topic.list", topics), output)


@app.command()
def match(
    pattern: PatternArgument,
    quiet: QuietOption = False,
    output: OutputOption = Format.TABLE,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """List the topics that a regular expression matches now; it must match the whole name."""
    from cli.admin.topic_match import check_pattern, compute_matching
    from cli.admin_client import connect

    check_pattern(pattern)
    with connect(server, timeout, command_config) as client:
        topics = client.list_topics()
    matching = compute_matching(pattern, topics)
    print_listing(compute_listing("topic.match", matching), output)
    if not quiet:
        print_note(f"matched: {len(matching)} of {len(topics)}")


@app.command()
def create(
    topics: TopicsArgument,
    dry_run: DryRunOption = False,
    quiet: QuietOption = False,
    output: OutputOption = Format.TABLE,
    *,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Create topics."""
    from cli.admin_client import connect

    specs = _parse(topics)
    with connect(server, timeout, command_config) as client:
        made, failed = _for_each(
            specs, lambda spec: client.create_topic(spec.name, spec.partitions, dry_run)
        )
    _report("topic.create", "created", made, dry_run, quiet, output)
    raise_failures(failed)


@app.command()
def grow(
    *,
    topics: TopicsArgument,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    quiet: QuietOption = False,
    output: OutputOption = Format.TABLE,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Add partitions to topics. The number of partitions can never be reduced."""
    from cli.admin_client import connect

    specs = _parse(topics)
    with connect(server, timeout, command_config) as client:
        if not yes and not dry_run:
            _preview_and_ask(client, {spec.name: str(spec.partitions) for spec in specs})
        grown, failed = _for_each(
            specs, lambda spec: client.grow_topic(spec.name, spec.partitions, dry_run)
        )
    _report("topic.grow", "grown", grown, dry_run, quiet, output)
    raise_failures(failed)


@app.command()
def racks(
    *,
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="The name of a topic.", autocompletion=complete_topics),
    ],
    given: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RACKS...]",
            help="Racks of the replicas of partitions 0, 1, …: a,b for two racks, - for unknown.",
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", help="A YAML list with a list of rack names for each partition."),
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Remove all racks.")] = False,
    dry_run: DryRunOption = False,
    quiet: QuietOption = False,
    output: OutputOption = Format.TABLE,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Set the racks of a topic's replicas for the assignor `rack`, or list them."""
    from cli.admin_client import connect

    wanted = _parse_racks(given or [], file, clear)
    with connect(server, timeout, command_config) as client:
        if wanted is None:
            known = [topic for topic in client.list_topics() if topic.topic_name == name]
            if not known:
                raise CommandError(f"topic {name} does not exist", ExitCode.NOT_FOUND)
            topic = known[0]
        else:
            topic = client.set_topic_racks(name, wanted, dry_run)
    print_listing(compute_racks_listing(topic), output)
    if wanted is not None and not quiet:
        print_note("would be set" if dry_run else "set")


def _parse_racks(given: Sequence[str], file: Path | None, clear: bool) -> Racks | None:
    """The racks to set; ``None`` if none are given."""
    if (bool(given), file is not None, clear).count(True) > 1:
        raise CommandError("give only one of RACKS, --file and --clear", ExitCode.USAGE)
    try:
        if file is not None:
            return read_racks_file(file)
        return parse_racks(given) if given or clear else None
    except TopicSpecError as error:
        raise CommandError(str(error), ExitCode.USAGE) from error


def compute_racks_listing(topic: admin_pb2.Topic) -> Listing:
    """A row for each partition."""
    known = [list(racks.names) for racks in topic.replica_racks]
    known += [[]] * (topic.num_partitions - len(known))
    rows = [[number, render_racks(names)] for number, names in enumerate(known)]
    items = [{"partition": number, "racks": names} for number, names in enumerate(known)]
    return Listing("topic.racks", ["PARTITION", "RACKS"], rows, {"partitions": items}, "partitions")


@app.command()
def delete(
    *,
    names: NamesArgument,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    quiet: QuietOption = False,
    output: OutputOption = Format.TABLE,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Delete topics, their records, and all their committed offsets."""
    from cli.admin_client import connect

    specs = [TopicSpec(name, 0) for name in dict.fromkeys(names)]
    with connect(server, timeout, command_config) as client:
        if not yes and not dry_run:
            _preview_and_ask(client, {spec.name: "deleted" for spec in specs})
        gone, failed = _for_each(specs, lambda spec: client.delete_topic(spec.name, dry_run))
    _report("topic.delete", "deleted", gone, dry_run, quiet, output)
    raise_failures(failed)


app.command("report-end")(report_end)


def compute_listing(command: str, topics: Sequence[admin_pb2.Topic]) -> Listing:
    """The table and the response of a topic command."""
    from google.protobuf.json_format import MessageToDict

    rows = [
        [topic.topic_name, topic.num_partitions, render_topic_id(topic.topic_id)]
        for topic in topics
    ]
    items = [
        MessageToDict(
            topic, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
        )
        for topic in topics
    ]
    columns = ["TOPIC", "PARTITIONS", "TOPIC-ID"]
    return Listing(command, columns, rows, {"topics": items}, "topics")


def _parse(texts: Sequence[str]) -> list[TopicSpec]:
    try:
        return merge_topics(parse_topic(text) for text in texts)
    except TopicSpecError as error:
        raise CommandError(str(error), ExitCode.USAGE) from error


def _for_each(
    specs: Sequence[TopicSpec], change: Callable[[TopicSpec], admin_pb2.Topic]
) -> tuple[list[admin_pb2.Topic], list[CommandError]]:
    """Apply ``change`` to every topic; a failure does not stop the others."""
    changed, failed = [], []
    for spec in specs:
        try:
            changed.append(change(spec))
        except CommandError as error:
            if error.exit_code is ExitCode.UNREACHABLE:
                raise
            failed.append(CommandError(f"{spec.name}: {error.message}", error.exit_code))
    return changed, failed


def _preview_and_ask(client: AdminClient, after: dict[str, str]) -> None:
    """Show the topics before and after the change on standard error, and ask."""
    now = {topic.topic_name: topic.num_partitions for topic in client.list_topics()}
    rows = [[name, now.get(name, "no such topic"), then] for name, then in after.items()]
    ask(["TOPIC", "PARTITIONS", "AFTER"], rows)


def _report(
    command: str,
    done: str,
    topics: Sequence[admin_pb2.Topic],
    dry_run: bool,
    quiet: bool,
    output: Format,
) -> None:
    if topics or output is not Format.TABLE:
        print_listing(compute_listing(command, topics), output)
    if topics and not quiet:
        print_note(f"{done}: {len(topics)}" if not dry_run else f"would be {done}: {len(topics)}")
