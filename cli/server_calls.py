"""Calls of the server's gRPC services: one connection, one deadline, errors as exit codes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import grpc

from cli.errors import CommandError, ExitCode
from cli.secure_channel import open_channel, read_security
from cli.server_troubles import describe_trouble
from cli.tool_security import ToolSecurity

Response = TypeVar("Response")

_Status = grpc.StatusCode

EXIT_CODE_OF = {
    _Status.NOT_FOUND: ExitCode.NOT_FOUND,
    _Status.ABORTED: ExitCode.PRECONDITION,
    _Status.ALREADY_EXISTS: ExitCode.PRECONDITION,
    _Status.FAILED_PRECONDITION: ExitCode.PRECONDITION,
    _Status.OUT_OF_RANGE: ExitCode.PRECONDITION,
    _Status.RESOURCE_EXHAUSTED: ExitCode.PRECONDITION,
    _Status.INVALID_ARGUMENT: ExitCode.USAGE,
    _Status.UNAVAILABLE: ExitCode.UNREACHABLE,
    _Status.DEADLINE_EXCEEDED: ExitCode.UNREACHABLE,
}
"""Exit codes by gRPC status; all others exit with ``FAILED``."""


class UnknownCall(CommandError):
    """The server has no such call: it is older."""


class ServerCalls:
    """A connection to a server; every error of a call is raised as a one-line ``CommandError``."""

    def __init__(
        self, channel: grpc.Channel, server: str, timeout_s: float, security: ToolSecurity
    ) -> None:
        self.channel = channel
        self.timeout_s = timeout_s
        """The deadline of each call."""
        self.server = server
        self._security = security

    def call(self, method: Callable[..., Response], request: Any) -> Response:
        """The response to a request."""
        with self.errors():
            return method(request, timeout=self.timeout_s)

    def follow(self, method: Callable[..., Any], request: Any) -> Iterator[Any]:
        """The responses to a request, as they come."""
        with self.errors():
            yield from method(request, timeout=self.timeout_s)

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Raise what a call raises within as a ``CommandError``."""
        try:
            yield
        except grpc.RpcError as error:
            raise _compute_command_error(
                error, self.server, self.timeout_s, self._security
            ) from error


@contextmanager
def open_calls(
    server: str, timeout_s: float, command_config: Path | ToolSecurity | None = None
) -> Iterator[ServerCalls]:
    """Connect to the server at ``HOST:PORT``, with the TLS and credentials of a client's file."""
    security = read_security(server, command_config)
    with open_channel(server, security) as channel:
        yield ServerCalls(channel, server, timeout_s, security)


def _compute_command_error(
    error: Any, server: str, timeout_s: float, security: ToolSecurity
) -> CommandError:
    """Convert a failed call into a one-line ``CommandError``."""
    status = error.code()
    detail = " ".join(str(error.details() or status.name).split())
    trouble = describe_trouble(status, detail, server, security)
    match status:
        case _ if trouble is not None:
            detail = trouble
        case _Status.UNAVAILABLE if not detail.startswith("COORDINATOR_"):
            detail = f"cannot reach {server}: is `muster serve` running there? ({detail})"
        case _Status.DEADLINE_EXCEEDED:
            detail = f"{server} did not answer within {timeout_s:g} s"
        case _Status.UNIMPLEMENTED:
            return UnknownCall(detail)
        case _:
            pass
    return CommandError(detail, EXIT_CODE_OF.get(status, ExitCode.FAILED))
