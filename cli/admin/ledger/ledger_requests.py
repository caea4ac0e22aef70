"""What `muster why` and `muster timeline` ask the server, and options of both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from cli.errors import CommandError, ExitCode

if TYPE_CHECKING:
    from cli.server_calls import ServerCalls
    from muster.v1 import explain_pb2, reset_pb2

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
    calls: ServerCalls,
    request: explain_pb2.ExplainGroupRequest,
    limit: int,
    *,
    may_be_missing: bool = False,
) -> tuple[list[explain_pb2.Rebalance], bool]:
    """The last rebalances, the last one first; whether there are more.

    ``may_be_missing``: there are none of a group that never rebalanced and is gone.
    """
    from muster.v1 import explain_pb2_grpc

    stub = explain_pb2_grpc.ExplainServiceStub(calls.channel)
    found: list[explain_pb2.Rebalance] = []
    while True:
        request.page_size = min(limit - len(found), PAGE_MAX)
        try:
            answer = calls.call(stub.ExplainGroup, request)
        except CommandError as error:
            if may_be_missing and error.exit_code is ExitCode.NOT_FOUND:
                return [], False
            raise
        found.extend(answer.rebalances)
        request.page_token = answer.next_page_token
        if not request.page_token or len(found) >= limit:
            return found, bool(request.page_token)


def ask_changes(
    calls: ServerCalls, asked: explain_pb2.ExplainGroupRequest, limit: int
) -> tuple[list[reset_pb2.OffsetChange], bool]:
    """The last changes of offsets in a time, the last one first; whether there are more.

    None of a server that is older than they are.
    """
    from cli.server_calls import UnknownCall
    from muster.v1 import reset_pb2, reset_pb2_grpc

    stub = reset_pb2_grpc.ResetServiceStub(calls.channel)
    request = reset_pb2.ListOffsetChangesRequest(group_id=asked.group_id, page_size=PAGE_MAX)
    found: list[reset_pb2.OffsetChange] = []
    while True:
        try:
            answer = calls.call(stub.ListOffsetChanges, request)
        except UnknownCall:
            return [], False
        for change in answer.changes:
            if change.changed_ms < asked.since_ms:
                return found, False
            if asked.until_ms and change.changed_ms >= asked.until_ms:
                continue
            if len(found) >= limit:
                return found, True
            found.append(change)
        request.page_token = answer.next_page_token
        if not request.page_token:
            return found, False
