"""What `muster why` and `muster timeline` ask the server, and options of both."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from cli.errors import CommandError, ExitCode

if TYPE_CHECKING:
    from muster.v1 import explain_pb2

PAGE_MAX: Final = 1_000

UntilOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--until", metavar="TIME", help="Only what began before that time or age."),
]


def make_request(
    group: str, since: str | None, until: str | None
) -> explain_pb2.ExplainGroupRequest:
    from muster.v1 import explain_pb2

    since_ms, until_ms = _parse("--since", since), _parse("--until", until)
    return explain_pb2.ExplainGroupRequest(group_id=group, since_ms=since_ms, until_ms=until_ms)


def _parse(option: str, text: str | None) -> int:
    from cli.log.as_of_option import read_wall_ms
    from cli.log.record_options import parse_time_option

    if text is None:
        return 0
    time_ms = parse_time_option(option, text, read_wall_ms)
    if time_ms >= 1 << 63:
        raise CommandError(f"{option} {text!r} is not a time: it is too large", ExitCode.USAGE)
    return max(time_ms, 1)


def ask(
    request: explain_pb2.ExplainGroupRequest,
    limit: int,
    server: str,
    timeout_s: float,
    command_config: Path | None,
) -> tuple[list[explain_pb2.Rebalance], bool]:
    """The last ones, the last one first; whether there are more."""
    from cli.server_calls import open_calls
    from muster.v1 import explain_pb2_grpc

    found: list[explain_pb2.Rebalance] = []
    with open_calls(server, timeout_s, command_config) as calls:
        stub = explain_pb2_grpc.ExplainServiceStub(calls.channel)
        while True:
            request.page_size = min(limit - len(found), PAGE_MAX)
            answer = calls.call(stub.ExplainGroup, request)
            found.extend(answer.rebalances)
            request.page_token = answer.next_page_token
            if not request.page_token or len(found) >= limit:
                return found, bool(request.page_token)
