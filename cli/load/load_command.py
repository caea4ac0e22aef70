"""The command `muster load`; the other modules of `cli.load` implement it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from cli.errors import CommandError, ExitCode
from cli.load.plan import GroupProtocol, Plan, Workload
from cli.options import DEFAULT_TIMEOUT, QuietOption, TimeoutOption, parse_duration

_PROCESSES_MAX = 4
_PARTITIONS = 100
_GROUPS = 10
_MEMBERS = 1000
_CONNECTIONS = 32


def load(
    # More than 6 parameters: they are the command's options.
    bootstrap_server: Annotated[
        str, typer.Option("--bootstrap-server", metavar="HOST:PORT", help="A Kafka listener.")
    ] = "",
    server: Annotated[
        str, typer.Option("--server", metavar="HOST:PORT", help="Muster's gRPC address.")
    ] = "",
    workload: Annotated[
        Workload, typer.Option("--workload", help="What the requests are.")
    ] = Workload.HEARTBEATS,
    protocol: Annotated[
        GroupProtocol | None,
        typer.Option("--protocol", help="Of the members; consumer, or session with --server."),
    ] = None,
    groups: Annotated[int, typer.Option("--groups", min=1, help="Number of groups.")] = _GROUPS,
    members: Annotated[
        int, typer.Option("--members", min=0, help="Members of all groups together.")
    ] = _MEMBERS,
    connections: Annotated[
        int, typer.Option("--connections", min=1, help="Connections of all processes together.")
    ] = _CONNECTIONS,
    in_flight: Annotated[
        int, typer.Option("--in-flight", min=1, help="Requests in flight on a connection.")
    ] = 1,
    topic: Annotated[
        str, typer.Option("--topic", help="Topic that members read; created if it lacks.")
    ] = "muster-load",
    partitions: Annotated[
        int | None,
        typer.Option("--partitions", min=1, help="Partitions of the topic (new: 100)."),
    ] = None,
    commit_partitions: Annotated[
        int, typer.Option("--commit-partitions", min=1, help="Partitions in each commit.")
    ] = 1,
    churn: Annotated[
        float, typer.Option("--churn", min=0, help="Members a second that leave and are replaced.")
    ] = 0,
    rate: Annotated[
        float, typer.Option("--rate", min=0, help="Requests a second; 0: as answers come.")
    ] = 0,
    ramp: Annotated[
        float,
        typer.Option(parser=parse_duration, metavar="DURATION", help="Rising load, not measured."),
    ] = "2s",  # type: ignore[assignment]
    duration: Annotated[
        float,
        typer.Option(parser=parse_duration, metavar="DURATION", help="Time that is measured."),
    ] = "10s",  # type: ignore[assignment]
    processes: Annotated[
        int | None,
        typer.Option("--processes", min=1, help="Processes (as many as cores, at most 4)."),
    ] = None,
    tls: Annotated[bool, typer.Option("--tls", help="Use TLS.")] = False,
    tls_ca: Annotated[
        str, typer.Option("--tls-ca", metavar="FILE", help="Certificates (PEM) to trust.")
    ] = "",
    tls_cert: Annotated[
        str, typer.Option("--tls-cert", metavar="FILE", help="The client's certificate (PEM).")
    ] = "",
    tls_key: Annotated[
        str, typer.Option("--tls-key", metavar="FILE", help="Its key (PEM), if in another file.")
    ] = "",
    sasl_mechanism: Annotated[
        str, typer.Option("--sasl-mechanism", help="PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.")
    ] = "",
    sasl_username: Annotated[str, typer.Option("--sasl-username", help="The user's name.")] = "",
    sasl_password: Annotated[
        str,
        typer.Option("--sasl-password", envvar="MUSTER_SASL_PASSWORD", help="Its password."),
    ] = "",
    command_config: Annotated[
        Path | None,
        typer.Option("--command-config", metavar="FILE", help="A Kafka client's .properties."),
    ] = None,
    expect: Annotated[
        list[str] | None,
        typer.Option("--expect", metavar="TEXT", help="Such as 'p99<20ms'; else exit code 1."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    quiet: QuietOption = False,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,  # type: ignore[assignment]
) -> None:
    """Load a server with members of groups, and measure what it holds and how long it takes."""
    from cli.load.arguments import (
        check_plan,
        choose_protocol,
        choose_security,
        parse_expectations,
    )
    from cli.load.security import Security

    security = Security(
        tls=tls, ca=tls_ca, certificate=tls_cert, key=tls_key,
        mechanism=sasl_mechanism, username=sasl_username, password=sasl_password,
    )  # fmt: skip
    plan = Plan(
        address=bootstrap_server or server,
        protocol=choose_protocol(bootstrap_server, server, protocol),
        workload=workload,
        topic=topic,
        partitions=partitions or _PARTITIONS,
        groups=groups,
        members=members,
        connections=connections,
        in_flight=in_flight,
        commit_partitions=commit_partitions,
        churn=churn,
        rate=rate,
        ramp_s=ramp,
        duration_s=duration,
        timeout_s=timeout,
        processes=processes or min(_PROCESSES_MAX, os.cpu_count() or 1),
        security=choose_security(security, command_config),
    )
    check_plan(plan)
    expectations = parse_expectations(expect or [])
    from cli.load.result import print_result
    from cli.load.run import run_load

    result = run_load(plan, partitions, is_quiet=quiet)
    failed = print_result(result, expectations, as_json=as_json)
    if result.is_interrupted:
        raise typer.Exit(ExitCode.INTERRUPTED)
    if failed:
        raise CommandError("\n".join(failed))
