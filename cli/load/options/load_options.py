"""The options of `muster load`."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.load.options.plan import GroupProtocol, Workload
from cli.options import parse_duration

BootstrapServerOption = Annotated[
    str, typer.Option("--bootstrap-server", metavar="HOST:PORT", help="A Kafka listener.")
]
ServerOption = Annotated[
    str, typer.Option("--server", metavar="HOST:PORT", help="Muster's gRPC address.")
]
WorkloadOption = Annotated[Workload, typer.Option("--workload", help="What the requests are.")]
ProtocolOption = Annotated[
    GroupProtocol | None,
    typer.Option("--protocol", help="Of the members; consumer, or session with --server."),
]
GroupsOption = Annotated[int, typer.Option("--groups", min=1, help="Number of groups.")]
MembersOption = Annotated[
    int, typer.Option("--members", min=0, help="Members of all groups together.")
]
ConnectionsOption = Annotated[
    int, typer.Option("--connections", min=1, help="Connections of all processes together.")
]
InFlightOption = Annotated[
    int, typer.Option("--in-flight", min=1, help="Requests in flight on a connection.")
]
TopicOption = Annotated[
    str, typer.Option("--topic", help="Topic that members read; created if it lacks.")
]
PartitionsOption = Annotated[
    int | None,
    typer.Option("--partitions", min=1, help="Partitions of the topic (new: 100)."),
]
CommitPartitionsOption = Annotated[
    int, typer.Option("--commit-partitions", min=1, help="Partitions in each commit.")
]
ChurnOption = Annotated[
    float, typer.Option("--churn", min=0, help="Members a second that leave and are replaced.")
]
RateOption = Annotated[
    float, typer.Option("--rate", min=0, help="Requests a second; 0: as answers come.")
]
RampOption = Annotated[
    float,
    typer.Option(parser=parse_duration, metavar="DURATION", help="Rising load, not measured."),
]
DurationOption = Annotated[
    float,
    typer.Option(parser=parse_duration, metavar="DURATION", help="Time that is measured."),
]
ProcessesOption = Annotated[
    int | None,
    typer.Option("--processes", min=1, help="Processes (as many as cores, at most 4)."),
]
TlsOption = Annotated[bool, typer.Option("--tls", help="Use TLS.")]
TlsCaOption = Annotated[
    str, typer.Option("--tls-ca", metavar="FILE", help="Certificates (PEM) to trust.")
]
TlsCertOption = Annotated[
    str, typer.Option("--tls-cert", metavar="FILE", help="The client's certificate (PEM).")
]
TlsKeyOption = Annotated[
    str, typer.Option("--tls-key", metavar="FILE", help="Its key (PEM), if in another file.")
]
SaslMechanismOption = Annotated[
    str, typer.Option("--sasl-mechanism", help="PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.")
]
SaslUsernameOption = Annotated[str, typer.Option("--sasl-username", help="The user's name.")]


def _refuse_on_command_line(context: typer.Context, param: typer.CallbackParam, value: str) -> str:
    source = context.get_parameter_source(param.name or "")
    if source is not None and source.name == "COMMANDLINE":
        raise typer.BadParameter(
            "`ps` shows it there: set MUSTER_SASL_PASSWORD, or use --command-config"
        )
    return value


SaslPasswordOption = Annotated[
    str,
    typer.Option(
        "--sasl-password",
        envvar="MUSTER_SASL_PASSWORD",
        callback=_refuse_on_command_line,
        help="Its password, by MUSTER_SASL_PASSWORD alone.",
    ),
]
ExpectOption = Annotated[
    list[str] | None,
    typer.Option("--expect", metavar="TEXT", help="Such as 'p99<20ms'; else exit code 1."),
]
AsJsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
