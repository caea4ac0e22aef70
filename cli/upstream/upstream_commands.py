"""`muster upstream`: how the groups of the cluster stand; take them over, and give them back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer

from cli.asking import ask, raise_failures
from cli.completion.names import complete_groups
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
from cli.output import Format, print_listing, print_note

if TYPE_CHECKING:
    from muster.v1 import upstream_pb2

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="In front of a Kafka cluster: show, take over and give back its groups.",
)

MOVE_TIMEOUT: Final[Any] = "10m"
"""A group has moved when its members have rejoined: in Java that may take 5 minutes."""

PLACES = ("upstream", "taking", "muster", "returning")

GroupsArgument: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(metavar="GROUP...", help="Ids of the groups.", autocompletion=complete_groups),
]


@app.command()
def status(
    place: Annotated[
        list[str] | None,
        typer.Option("--place", metavar="PLACE", help=f"Only groups there: {', '.join(PLACES)}."),
    ] = None,
    output: OutputOption = Format.TABLE,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Show the cluster, where each group is, and who is in the way of taking it."""
    from cli.upstream.upstream_client import connect_upstream
    from cli.upstream.upstream_listings import compute_status

    places = parse_places(place or ())
    with connect_upstream(server, timeout, command_config) as client:
        found = client.get_upstream()
        groups = client.list_groups(places)
    print_listing(compute_status(found, groups), output)


@app.command()
def take(
    groups: GroupsArgument = None,
    *,
    pattern: Annotated[
        str | None,
        typer.Option("--pattern", metavar="REGEX", help="All groups whose whole id matches."),
    ] = None,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    quiet: QuietOption = False,
    output: OutputOption = Format.TABLE,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = MOVE_TIMEOUT,
) -> None:
    """Take groups over from the cluster while they work."""
    from cli.upstream.upstream_client import connect_upstream

    names = _choose(groups, pattern is not None, "--pattern")
    effect = "These groups will be taken over from the cluster. Each one rebalances once."
    with connect_upstream(server, timeout, command_config) as client:
        previewed = not yes or dry_run
        if previewed:
            reports = list(client.take(names, pattern or "", dry_run=True))
        if not dry_run:
            if previewed:
                _ask(reports, effect)
            reports = _follow(client.take(names, pattern or "", dry_run=False), "taken", quiet)
    _finish("upstream.take", reports, output)


@app.command()
def release(
    groups: GroupsArgument = None,
    *,
    means_all: Annotated[bool, typer.Option("--all", help="All groups that are here.")] = False,
    bootstrap_servers: Annotated[
        str | None,
        typer.Option(
            "--bootstrap-servers",
            "--bootstrap-server",
            metavar="HOST:PORT,...",
            help="The cluster itself: Muster's place in the groups is removed without a running "
            "server. --command-config then has Muster's login there.",
        ),
    ] = None,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    quiet: QuietOption = False,
    output: OutputOption = Format.TABLE,
    server: ServerOption = DEFAULT_SERVER,
    command_config: CommandConfigOption = None,
    timeout: TimeoutOption = MOVE_TIMEOUT,
) -> None:
    """Give groups back to the cluster while they work."""
    names = _choose(groups, means_all, "--all")
    if bootstrap_servers is not None:
        from cli.upstream.releasing_alone import Asked, release_alone

        asked = Asked(names, bootstrap_servers, command_config, timeout, yes, dry_run)
        _finish("upstream.release", release_alone(asked), output)
        return
    from cli.upstream.upstream_client import connect_upstream

    effect = "These groups will be given back to the cluster. Each one rebalances once."
    with connect_upstream(server, timeout, command_config) as client:
        previewed = not yes or dry_run
        if previewed:
            reports = list(client.release(names, means_all=means_all, dry_run=True))
        if not dry_run:
            if previewed:
                _ask(reports, effect)
            moving = client.release(names, means_all=means_all, dry_run=False)
            reports = _follow(moving, "released", quiet)
    _finish("upstream.release", reports, output)


def parse_places(texts: Sequence[str]) -> list[int]:
    """The numbers of places by name. Raises ``CommandError``."""
    from muster.v1 import upstream_pb2

    for text in texts:
        if text not in PLACES:
            raise CommandError(f"{text!r} is not one of {', '.join(PLACES)}", ExitCode.USAGE)
    return [upstream_pb2.GroupPlace.Value(f"GROUP_PLACE_{text.upper()}") for text in texts]


def _choose(groups: Sequence[str] | None, means_more: bool, option: str) -> list[str]:
    """The groups that are named, each once."""
    if bool(groups) == means_more:
        raise CommandError(f"name groups, or give {option}: one of both", ExitCode.USAGE)
    return list(dict.fromkeys(groups or ()))


def _ask(reports: Sequence[upstream_pb2.GroupReport], effect: str) -> None:
    """Show what would happen and ask, unless nothing could be done."""
    from cli.upstream.upstream_listings import REPORT_COLUMNS, compute_failures, compute_reports

    failures = compute_failures(reports)
    if len(failures) == len(reports):
        if not failures:
            raise CommandError("there is no such group", ExitCode.NOT_FOUND)
        raise_failures(failures)
    ask(REPORT_COLUMNS, compute_reports("", reports).rows, effect)


def _follow(
    reports: Iterator[upstream_pb2.GroupReport], done: str, quiet: bool
) -> list[upstream_pb2.GroupReport]:
    """All reports; each is told as it comes."""
    found: list[upstream_pb2.GroupReport] = []
    moved = 0
    for report in reports:
        found.append(report)
        moved += not report.HasField("error")
        if not quiet:
            result = "not moved" if report.HasField("error") else done
            count = f"{len(found)}/{report.groups}"
            print_note(f"{count}  {report.group.group_id}: {result}")
    return sorted(found, key=lambda report: report.group.group_id)


def _finish(command: str, reports: Sequence[upstream_pb2.GroupReport], output: Format) -> None:
    from cli.upstream.upstream_listings import compute_failures, compute_reports

    if not reports:
        raise CommandError("there is no such group", ExitCode.NOT_FOUND)
    print_listing(compute_reports(command, reports), output)
    raise_failures(compute_failures(reports))
