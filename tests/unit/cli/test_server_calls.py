"""Calls of the command line, against a server that has one answer."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from cli.server_calls import open_calls
from cli.server_troubles import describe_trouble
from cli.tool_security import ToolSecurity
from muster.v1 import what_if_pb2, what_if_pb2_grpc

MEMBERS = 10_000


class WhatIfOfALargeGroup(what_if_pb2_grpc.WhatIfServiceServicer):
    """Tells of as many members as a question may be about, with long names."""

    def WhatIf(
        self, request: what_if_pb2.WhatIfRequest, context: grpc.ServicerContext
    ) -> what_if_pb2.WhatIfResponse:
        load = what_if_pb2.MemberLoad(member_id="m" * 500, client_id="c" * 500)
        return what_if_pb2.WhatIfResponse(members=[load] * MEMBERS)


def test_an_answer_may_be_larger_than_what_grpc_takes_by_itself() -> None:
    with ThreadPoolExecutor(1) as threads:
        server = grpc.server(threads, options=(("grpc.max_send_message_length", -1),))
        what_if_pb2_grpc.add_WhatIfServiceServicer_to_server(WhatIfOfALargeGroup(), server)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            with open_calls(f"127.0.0.1:{port}", 30.0) as calls:
                stub = what_if_pb2_grpc.WhatIfServiceStub(calls.channel)
                answer = calls.call(stub.WhatIf, what_if_pb2.WhatIfRequest(group_id="g"))
        finally:
            server.stop(None).wait(10)
    assert answer.ByteSize() > 4 << 20
    assert len(answer.members) == MEMBERS


@pytest.mark.parametrize(
    ("detail", "says"),
    [
        ("GROUP_ID_NOT_FOUND: Group a not found.", "Group a not found: `muster group list` shows"),
        (
            "UNKNOWN_TOPIC_OR_PARTITION: There is no topic a.",
            "no topic a: `muster topic list` shows",
        ),
    ],
)
def test_who_asks_for_what_is_not_there_is_told_where_to_look(detail: str, says: str) -> None:
    found = describe_trouble(grpc.StatusCode.NOT_FOUND, detail, "127.0.0.1:1", ToolSecurity())
    assert found is not None
    assert says in found
    other = "RESOURCE_NOT_FOUND: There is nothing to undo."
    assert describe_trouble(grpc.StatusCode.NOT_FOUND, other, "127.0.0.1:1", ToolSecurity()) is None


def test_a_request_that_is_too_large_is_told_as_that() -> None:
    detail = "SERVER: Received message larger than max (8588903 vs. 4194304)"
    status = grpc.StatusCode.RESOURCE_EXHAUSTED
    found = describe_trouble(status, detail, "127.0.0.1:1", ToolSecurity())
    assert found is not None
    assert "the request is larger than what 127.0.0.1:1 takes (grpc.message.max.bytes)" in found
    assert describe_trouble(status, "QUOTA: wait", "127.0.0.1:1", ToolSecurity()) is None
