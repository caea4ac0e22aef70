"""Spans of gRPC calls, whose client may have a trace of its own."""

from __future__ import annotations

import grpc
import pytest
from opentelemetry.trace import SpanKind

from muster.v1 import group_pb2, types_pb2
from tests.support.service.session_client import SessionClient, commit
from tests.support.service.stand import running_stand
from tests.support.traced import Traced, children_of, only, time_of

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SAMPLED = (("traceparent", f"00-{TRACE}-{SPAN}-01"),)
NOT_SAMPLED = (("traceparent", f"00-{TRACE}-{SPAN}-00"),)
METHOD = "muster.v1.GroupService/CommitOffsets"


def request_of(offset: int, partition: int = 0) -> group_pb2.CommitOffsetsRequest:
    row = types_pb2.PartitionOffset(partition=partition, offset=offset)
    topics = [types_pb2.TopicOffsets(topic_name="orders", partitions=[row])]
    return group_pb2.CommitOffsetsRequest(group_id="loose", client_id="app", topics=topics)


async def test_a_commit_continues_the_trace_of_its_client() -> None:
    traced = Traced(one_in=2**31)
    async with running_stand(trips=traced.trips) as stand:
        stub = stand.group_stub()
        await stub.CommitOffsets(request_of(1))
        await stub.CommitOffsets(request_of(2), metadata=NOT_SAMPLED)
        await stub.CommitOffsets(request_of(3), metadata=SAMPLED)
        await traced.until(1)
    spans = traced.spans()
    own = only(lambda span: span.kind is SpanKind.SERVER, spans)
    assert own.name == METHOD
    assert f"{own.context.trace_id:032x}" == TRACE
    assert own.parent is not None
    assert own.parent.is_remote
    assert f"{own.parent.span_id:016x}" == SPAN
    assert own.attributes == {
        "rpc.system.name": "grpc",
        "rpc.method": METHOD,
        "rpc.response.status_code": "OK",
        "messaging.consumer.group.name": "loose",
        "messaging.client.id": "app",
    }
    steps = children_of(own, spans)
    assert [step.name for step in steps] == [
        "decode", "authorize", "queue", "handle", "append", "write", "flush", "answer",
    ]  # fmt: skip
    times = [moment for step in steps for moment in time_of(step)]
    assert times == sorted(times)


async def test_failures_have_their_names() -> None:
    traced = Traced()
    async with running_stand(trips=traced.trips) as stand:
        stub = stand.group_stub()
        failed = await stub.CommitOffsets(request_of(1, partition=99))
        assert failed.failures
        refused = await stub.CommitOffsets(group_pb2.CommitOffsetsRequest())
        assert refused.HasField("error")
        with pytest.raises(grpc.aio.AioRpcError):
            await stand.channel().unary_unary(f"/{METHOD}")(b"\xff")
        await traced.until(3)
    spans = traced.spans()
    owns = [span.attributes or {} for span in spans if span.kind is SpanKind.SERVER]
    named = [(own["error.type"], own["rpc.response.status_code"]) for own in owns]
    assert named == [
        ("UNKNOWN_TOPIC_OR_PARTITION", "OK"),
        (refused.error.reason, "OK"),
        ("INVALID_ARGUMENT", "INVALID_ARGUMENT"),
    ]


async def test_commits_on_a_stream_are_requests_of_their_own() -> None:
    traced = Traced()
    async with running_stand(trips=traced.trips) as stand:
        client = SessionClient(stand.group_stub(), metadata=SAMPLED)
        await client.settle("m1", await client.join("m1"))
        await client.send(commit("m1", 2, {0: 1}))
        assert not (await client.expect("commit_result")).HasField("error")
    spans = traced.spans()
    owns = [span for span in spans if span.kind is SpanKind.SERVER]
    assert {span.name for span in owns} == {"muster.v1.GroupService/Session"}
    assert {f"{span.context.trace_id:032x}" for span in owns} == {TRACE}
    assert len({span.context.span_id for span in owns}) == len(owns) >= 2
    named = [[step.name for step in children_of(own, spans)] for own in owns]
    assert ["queue", "handle", "append", "write", "flush", "answer"] in named
