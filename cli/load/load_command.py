"""The command `muster load`; the other modules of `cli.load` implement it."""

from __future__ import annotations

import os
from collections.abc import Sequence

import typer

from cli.errors import CommandError, ExitCode
from cli.load.options.expectations import Expectation
from cli.load.options.load_options import (
    AsJsonOption,
    BootstrapServerOption,
    ChurnOption,
    CommitPartitionsOption,
    ConnectionsOption,
    DurationOption,
    ExpectOption,
    GroupsOption,
    InFlightOption,
    MembersOption,
    PartitionsOption,
    ProcessesOption,
    ProtocolOption,
    RampOption,
    RateOption,
    SaslMechanismOption,
    SaslPasswordOption,
    SaslUsernameOption,
    ServerOption,
    TlsCaOption,
    TlsCertOption,
    TlsKeyOption,
    TlsOption,
    TopicOption,
    WorkloadOption,
)
from cli.load.options.plan import Plan, Workload
from cli.options import DEFAULT_TIMEOUT, CommandConfigOption, QuietOption, TimeoutOption

_PROCESSES_MAX = 4
_PARTITIONS = 100
_GROUPS = 10
_MEMBERS = 1000
_CONNECTIONS = 32


def load(
    # More than 6 parameters: they are the command's options.
    bootstrap_server: BootstrapServerOption = "",
    server: ServerOption = "",
    workload: WorkloadOption = Workload.HEARTBEATS,
    protocol: ProtocolOption = None,
    groups: GroupsOption = _GROUPS,
    members: MembersOption = _MEMBERS,
    connections: ConnectionsOption = _CONNECTIONS,
    in_flight: InFlightOption = 1,
    topic: TopicOption = "muster-load",
    partitions: PartitionsOption = None,
    commit_partitions: CommitPartitionsOption = 1,
    churn: ChurnOption = 0,
    rate: RateOption = 0,
    ramp: RampOption = "2s",  # type: ignore[assignment]
    duration: DurationOption = "10s",  # type: ignore[assignment]
    processes: ProcessesOption = None,
    tls: TlsOption = False,
    tls_ca: TlsCaOption = "",
    tls_cert: TlsCertOption = "",
    tls_key: TlsKeyOption = "",
    sasl_mechanism: SaslMechanismOption = "",
    sasl_username: SaslUsernameOption = "",
    sasl_password: SaslPasswordOption = "",
    command_config: CommandConfigOption = None,
    expect: ExpectOption = None,
    as_json: AsJsonOption = False,
    quiet: QuietOption = False,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Load a server with members of groups, and measure what it holds and how long it takes."""
    from cli.load.options import arguments
    from cli.tool_security import ToolSecurity

    security = ToolSecurity(
        tls=tls, ca=tls_ca, certificate=tls_cert, key=tls_key,
        mechanism=sasl_mechanism, username=sasl_username, password=sasl_password,
    )  # fmt: skip
    chosen = arguments.choose_protocol(bootstrap_server, server, protocol)
    plan = Plan(
        address=bootstrap_server or server,
        protocol=chosen,
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
        security=arguments.choose_security(security, command_config, chosen),
    )
    arguments.check_plan(plan)
    _run(plan, partitions, arguments.parse_expectations(expect or []), as_json, quiet)


def _run(
    plan: Plan,
    partitions: int | None,
    expectations: Sequence[Expectation],
    as_json: bool,
    is_quiet: bool,
) -> None:
    """Run the test and print its result. Raises ``CommandError`` for failed expectations."""
    from cli.load.result import print_result
    from cli.load.run import run_load

    result = run_load(plan, partitions, is_quiet=is_quiet)
    failed = print_result(result, expectations, as_json=as_json)
    if result.is_interrupted:
        raise typer.Exit(ExitCode.INTERRUPTED)
    if failed:
        raise CommandError("\n".join(failed))
    if result.failures:
        # Some of the figures are missing; a line for each has been printed.
        raise typer.Exit(ExitCode.FAILED)
