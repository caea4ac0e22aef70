"""Spans of requests on the Kafka wire, of a real server in the process."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode

from coordinator.runtime.trips.trip import Sync
from coordinator.runtime.trips.trips import COVERS_MAX, TEXT_MAX
from tests.support.gateway.wire_rig import HEARTBEAT, run_rig
from tests.support.gateway.wire_steps import (
    COMMIT,
    METADATA,
    UNPARKED,
    commit_codes,
    commit_topics,
    member_of,
)
from tests.support.traced import Traced, children_of, only, time_of
from tests.support.wire.connection import Connection
from tests.support.wire.fields import join

WRITTEN = ["authorize", "queue", "handle", "append", "write", "flush", "answer"]
REPEATED = ["handle", "append", "write", "flush", "answer"]


def fields_of(offset: int, group: str = "g") -> dict[str, Any]:
    return {
        "group_id": group,
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "group_instance_id": None,
        "topics": commit_topics(9, "t", {0: (offset, "")}),
    }


async def commit(client: Connection, offset: int, group: str = "g") -> None:
    assert commit_codes(await client.ask(COMMIT, 9, **fields_of(offset, group))) == [0]


def check_times(spans: list[ReadableSpan]) -> None:
    """Each begins where the one before ends, and none ends before it begins."""
    times = [moment for span in spans for moment in time_of(span)]
    assert times == sorted(times)


async def test_the_way_of_a_commit() -> None:
    traced = Traced()
    async with run_rig(UNPARKED, trips=traced.trips) as rig, await rig.connect() as client:
        await rig.create_topic("t", 1)
        client.client_id = "billing-1"
        before_ns = time.time_ns()
        await commit(client, 7)
        await traced.until(1)
        after_ns = time.time_ns()
    spans = traced.spans()
    own = only(lambda span: span.kind is SpanKind.SERVER, spans)
    assert own.name == "OffsetCommit"
    assert own.parent is None
    assert own.status.status_code is StatusCode.UNSET
    assert own.attributes == {
        "messaging.system": "kafka",
        "messaging.operation.name": "OffsetCommit",
        "messaging.operation.type": "settle",
        "messaging.consumer.group.name": "g",
        "messaging.client.id": "billing-1",
        "muster.kafka.api_key": 8,
        "muster.kafka.api_version": 9,
    }
    steps = children_of(own, spans)
    assert [step.name for step in steps] == ["decode", *WRITTEN]
    check_times(steps)
    assert before_ns <= time_of(own)[0] == time_of(steps[0])[0]
    assert time_of(steps[-1])[1] == time_of(own)[1] <= after_ns
    assert {span.context.trace_id for span in (own, *steps)} == {own.context.trace_id}


async def test_a_sync_is_linked_with_the_commits_in_it() -> None:
    traced = Traced()
    async with run_rig(UNPARKED, trips=traced.trips) as rig:
        await rig.create_topic("t", 1)
        clients = [await rig.connect() for _ in range(3)]
        for number, client in enumerate(clients):
            client.send(COMMIT, 9, **fields_of(number, f"g{number}"))
        await asyncio.gather(*(client.read(COMMIT, 9) for client in clients))
        await traced.until(3)
        for client in clients:
            client.writer.close()
    spans = traced.spans()
    syncs = [span for span in spans if span.name == "sync log"]
    linked = {link.context.span_id: sync for sync in syncs for link in sync.links}
    owns = [span for span in spans if span.kind is SpanKind.SERVER]
    assert set(linked) == {own.context.span_id for own in owns}
    assert len(owns) == 3
    assert sum(int(sync.attributes["muster.sync.requests"]) for sync in syncs) == 3  # type: ignore[index, arg-type, misc]
    for own in owns:
        sync = linked[own.context.span_id]
        flush = only(lambda span: span.name == "flush", children_of(own, spans))
        assert [link.context for link in flush.links] == [sync.context]
        assert sync.context.trace_id != own.context.trace_id
        assert time_of(flush)[1] - time_of(sync)[1] < 1_000_000_000


async def test_a_commit_that_repeats_is_served_without_being_decoded() -> None:
    traced = Traced()
    async with run_rig(UNPARKED, trips=traced.trips) as rig, await rig.connect() as client:
        await rig.create_topic("t", 1)
        await commit(client, 1)
        await traced.until(1)
        traced.forget()
        await commit(client, 2)
        await traced.until(1)
    spans = traced.spans()
    own = only(lambda span: span.kind is SpanKind.SERVER, spans)
    assert own.name == "OffsetCommit"
    assert own.attributes is not None
    assert own.attributes["muster.repeated"] is True
    assert own.attributes["messaging.consumer.group.name"] == "g"
    steps = children_of(own, spans)
    assert [step.name for step in steps] == REPEATED
    check_times(steps)


async def test_requests_of_any_api() -> None:
    traced = Traced()
    async with run_rig(UNPARKED, trips=traced.trips) as rig, await rig.connect() as client:
        await rig.create_topic("t", 1)
        epoch = await member_of(client, "g")
        await client.ask(METADATA, 12)
        fenced = await client.ask(HEARTBEAT, 1, **{**join("g", "m", ("t",)), "member_epoch": 99})
        assert fenced.error_code
        assert epoch
        await traced.until(3)
    spans = traced.spans()
    joined, asked, refused = (span for span in spans if span.kind is SpanKind.SERVER)
    assert [span.name for span in (joined, asked, refused)] == [
        "ConsumerGroupHeartbeat",
        "Metadata",
        "ConsumerGroupHeartbeat",
    ]
    assert [step.name for step in children_of(joined, spans)] == ["decode", *WRITTEN]
    assert [step.name for step in children_of(asked, spans)] == ["decode", "handle"]
    assert refused.attributes is not None
    assert refused.attributes["error.type"] == "FENCED_MEMBER_EPOCH"
    assert refused.status.status_code is StatusCode.ERROR


async def test_one_of_so_many_requests_is_traced() -> None:
    traced = Traced(one_in=10)
    async with run_rig(UNPARKED, trips=traced.trips) as rig, await rig.connect() as client:
        await rig.create_topic("t", 1)
        for offset in range(200):
            await commit(client, offset)
    assert 5 <= len(traced.find_trips()) <= 45
    assert traced.trips.current is None
    assert traced.trips.acting is None


async def test_what_is_kept_of_a_client_is_bounded() -> None:
    traced = Traced()
    async with run_rig(UNPARKED, trips=traced.trips) as rig, await rig.connect() as client:
        await rig.create_topic("t", 1)
        client.client_id = "c" * 5_000
        for number in range(2):
            await commit(client, number)
        await traced.until(2)
    assert {len(trip.client_id) for trip in traced.find_trips()} == {TEXT_MAX}


def test_a_sync_names_some_of_many_requests() -> None:
    traced = Traced()
    trips = traced.trips
    for _ in range(COVERS_MAX + 5):
        trips.acting = trips.begin()
        trips.note_gathered()
    trips.note_written()
    trips.begin_sync()
    trips.end_sync()
    (sync,) = traced.ended
    assert isinstance(sync, Sync)
    assert len(sync.covers) == COVERS_MAX
    assert sync.requests == COVERS_MAX + 5
