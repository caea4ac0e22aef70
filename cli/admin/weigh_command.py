"""`muster config weigh`: partition weights from the consumption rate or the lag of a group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.errors import CommandError, ExitCode
from cli.options import (
    DEFAULT_SERVER,
    DEFAULT_TIMEOUT,
    DryRunOption,
    OutputOption,
    ServerOption,
    TimeoutOption,
)
from cli.output import Format, Listing, print_listing
from model.configs.group_configs import WEIGHTS

if TYPE_CHECKING:
    from muster.assignors.problem import Floats
    from muster.v1 import group_pb2

Offsets = Mapping[tuple[str, int], int]
Weights = Mapping[tuple[str, int], float]


ServerConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--server-config",
        envvar="MUSTER_COMMAND_CONFIG",
        metavar="FILE",
        help="TLS and credentials for the server: a Kafka client's .properties.",
    ),
]


def weigh(
    *,
    group: Annotated[str, typer.Option("--group", "-g", help="Id of the group.")],
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="TIME",
            help="Weigh by what the group has consumed since then: an age such as 10m.",
        ),
    ] = None,
    bootstrap: Annotated[
        str | None,
        typer.Option(
            "--bootstrap-server",
            metavar="HOST:PORT",
            help="Weigh by lag; the end offsets are read from this Kafka cluster.",
        ),
    ] = None,
    command_config: Annotated[
        Path | None,
        typer.Option("--command-config", help="librdkafka settings, as a .properties file."),
    ] = None,
    dry_run: DryRunOption = False,
    output: OutputOption = Format.TABLE,
    server: ServerOption = DEFAULT_SERVER,
    server_config: ServerConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Set a group's partition weights for the assignor `weighted`, by consumption rate or lag."""
    if (since is None) == (bootstrap is None):
        raise CommandError("give either --since or --bootstrap-server", ExitCode.USAGE)
    from cli.admin_client import connect
    from cli.log.as_of_option import parse_as_of_option, read_wall_ms
    from cli.log.cluster import Cluster

    with connect(server, timeout, server_config) as client:
        now = list_committed(client.fetch_offsets(group, False))
        if not now:
            raise CommandError(
                f"group {group} has no committed offsets to compute weights from",
                ExitCode.NOT_FOUND,
            )
        if bootstrap is not None:
            cluster = Cluster(bootstrap, command_config, timeout)
            weights = weigh_by_lag(cluster.list_end_offsets(now), now)
        else:
            as_of = parse_as_of_option(since)
            assert as_of is not None
            if as_of.WhichOneof("position") != "timestamp_ms":
                raise CommandError(f"--since {since!r} is not a time", ExitCode.USAGE)
            seconds = (read_wall_ms() - as_of.timestamp_ms) / 1000
            if seconds <= 0:
                raise CommandError(f"--since {since!r} is not in the past", ExitCode.USAGE)
            before = list_committed(client.fetch_offsets(group, False, as_of))
            if not before.keys() & now.keys():
                raise CommandError(
                    f"group {group} had no committed offsets {since} ago: use a later --since",
                    ExitCode.NOT_FOUND,
                )
            weights = weigh_by_rate(before, now, seconds)
        client.alter_group_configs(group, {WEIGHTS: render_weights(weights)}, dry_run)
    print_listing(_compute_listing(group, weights), output)


def list_committed(response: group_pb2.FetchOffsetsResponse) -> dict[tuple[str, int], int]:
    """Committed offsets by topic and partition, sorted."""
    found = {
        (topic.topic_name, row.partition): row.offset
        for topic in response.topics
        for row in topic.partitions
    }
    return dict(sorted(found.items()))


def weigh_by_lag(ends: Offsets, committed: Offsets) -> Weights:
    """Weights by lag (see ``muster.assignors.weights``), with a mean of 1."""
    from muster.assignors.weights import compute_weights_from_lag

    places = list(committed)
    weight = compute_weights_from_lag(_array(ends, places), _array(committed, places))
    return dict(zip(places, (weight / weight.mean()).tolist(), strict=True))


def weigh_by_rate(before: Offsets, now: Offsets, seconds: float) -> Weights:
    """Weights by consumption rate (see ``muster.assignors.weights``), with a mean of 1."""
    from muster.assignors.weights import compute_weights_from_rate

    places = list(now)
    weight = compute_weights_from_rate(_array(before, places), _array(now, places), seconds)
    return dict(zip(places, (weight / weight.mean()).tolist(), strict=True))


def _array(offsets: Offsets, places: Iterable[tuple[str, int]]) -> Floats:
    import numpy as np

    return np.array([offsets.get(place, np.nan) for place in places], dtype=np.float64)


def render_weights(weights: Weights) -> str:
    """Render the config's value: two digits each, so that small differences move no partition."""
    return ",".join(f"{topic}:{number}={weight:.2g}" for (topic, number), weight in weights.items())


def _compute_listing(group: str, weights: Weights) -> Listing:
    rows = [[topic, number, f"{weight:.2g}"] for (topic, number), weight in weights.items()]
    items = [
        {"topic": topic, "partition": number, "weight": float(f"{weight:.2g}")}
        for (topic, number), weight in weights.items()
    ]
    content = {"group": group, "weights": items}
    return Listing("config.weigh", ["TOPIC", "PARTITION", "WEIGHT"], rows, content, "weights")
