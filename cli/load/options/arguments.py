"""Checks what `muster load` was given. Everything raises ``CommandError`` with exit code 2."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from cli.errors import CommandError, ExitCode
from cli.load.options.expectations import Expectation, ExpectationError, parse_expectation
from cli.load.options.plan import GroupProtocol, Plan, Workload
from cli.tool_security import SecurityError, ToolSecurity, read_client_properties


def choose_protocol(
    bootstrap_server: str, server: str, protocol: GroupProtocol | None
) -> GroupProtocol:
    """The protocol of the members on the one server that is named."""
    if bool(bootstrap_server) == bool(server):
        raise _compute_error(
            "name one server: --bootstrap-server (Kafka's wire) or --server (gRPC)"
        )
    if server:
        if protocol not in (None, GroupProtocol.SESSION):
            raise _compute_error(f"--protocol {protocol} needs --bootstrap-server")
        return GroupProtocol.SESSION
    if protocol is GroupProtocol.SESSION:
        raise _compute_error("--protocol session needs --server")
    return protocol or GroupProtocol.CONSUMER


def choose_security(
    options: ToolSecurity, command_config: Path | None, protocol: GroupProtocol
) -> ToolSecurity:
    """The security of options, or of a file."""
    takes_tokens = protocol is GroupProtocol.SESSION
    try:
        if command_config is None:
            options.check(takes_tokens=takes_tokens)
            return options
        if options != ToolSecurity(password=options.password):
            raise SecurityError("--command-config and options of TLS or SASL: use one of them")
        security = read_client_properties(command_config)
        security.check(takes_tokens=takes_tokens)
    except SecurityError as error:
        raise _compute_error(str(error)) from error
    return security


def check_plan(plan: Plan) -> None:
    """Whether the parts of a plan fit together."""
    host, colon, port = plan.address.rpartition(":")
    if not (host and colon and port.isdigit() and 0 < int(port) < 65536):
        raise _compute_error(f"{plan.address!r} is not HOST:PORT")
    if not (math.isfinite(plan.rate) and math.isfinite(plan.churn)):
        raise _compute_error("--rate and --churn are numbers a second")
    if not plan.members and plan.workload is not Workload.COMMITS:
        raise _compute_error(f"{plan.workload} need --members; only commits can do without")
    if not plan.members and (plan.churn or plan.protocol is GroupProtocol.SESSION):
        raise _compute_error("--churn and --server need --members")
    if plan.members and plan.members < plan.groups:
        raise _compute_error(f"{plan.members} members are too few for {plan.groups} groups")
    if plan.workload is Workload.IDLE and plan.rate:
        raise _compute_error("--workload idle sends only what members need: leave --rate out")
    if plan.protocol is GroupProtocol.SESSION:
        if plan.workload is Workload.HEARTBEATS:
            raise _compute_error(
                "sessions need no heartbeats: use --workload commits, or idle with --churn"
            )
        if plan.security.key_password or not plan.security.checks_name:
            raise _compute_error(
                "sessions take no key with a password, and always check the server's name"
            )


def parse_expectations(texts: Sequence[str]) -> list[Expectation]:
    """All expectations."""
    try:
        return [parse_expectation(text) for text in texts]
    except ExpectationError as error:
        raise _compute_error(f"--expect {error}") from error


def _compute_error(message: str) -> CommandError:
    return CommandError(message, ExitCode.USAGE)
