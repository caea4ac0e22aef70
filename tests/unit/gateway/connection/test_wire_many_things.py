"""Requests for very many small items: each event-loop iteration handles a limited number."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any
from unittest import mock

import pytest

from coordinator.runtime.loop.slices import Slices, Steps, run_at_once
from gateway import long_answers
from gateway.apis.offsets import k28_txn_offset_commit
from gateway.apis.topics import k75_describe_topic_partitions
from gateway.codec import decoding_in_slices
from gateway.codec.decoding import DecodeError, decode
from gateway.codec.decoding_in_slices import LEAST_BYTES, SLICE, decode_in_slices
from gateway.codec.encoding import encode
from gateway.codec.kio_schema import compute_fields, request_schema, request_type, response_type
from gateway.commits.offset_commit_wire import make_commit_decoder, make_long_commit_decoder
from gateway.heartbeats.heartbeat_wire import make_heartbeat_decoder, make_long_heartbeat_decoder
from model.errors import ErrorCode
from tests.support.gateway.wire_door import Gateway
from tests.support.gateway.wire_rig import run_rig, with_settings
from tests.support.wire.connection import Connection
from tests.support.wire.frames import frame, make_request
from tests.unit.gateway.codec.test_wire_hand_codecs import make_commit

ELEMENTS = 250_000
COUNT = 12_000
MANY = 3 * COUNT
COMMIT, MARKERS, TXN_COMMIT, DELETE_GROUPS, VERSIONS, HEARTBEAT = 8, 27, 28, 42, 18, 68


def module(key: int, version: int) -> ModuleType:
    found: ModuleType = request_schema(key, version)
    return found


def ask_offsets(count: int) -> dict[str, Any]:
    wire = module(9, 8)
    topics = tuple(
        wire.OffsetFetchRequestTopics(name=f"t{number}", partition_indexes=())
        for number in range(count)
    )
    group = wire.OffsetFetchRequestGroup(group_id="g", topics=topics)
    return {"groups": (group,), "require_stable": False}


def name_groups(count: int) -> tuple[str, ...]:
    return tuple(f"g{number}" for number in range(count))


def fetch_groups(count: int) -> dict[str, Any]:
    wire = module(9, 8)
    groups = (
        wire.OffsetFetchRequestGroup(group_id=name, topics=None) for name in name_groups(count)
    )
    return {"groups": tuple(groups), "require_stable": False}


def ask_metadata(count: int) -> dict[str, Any]:
    wire = module(3, 12)
    return {
        "topics": tuple(
            wire.MetadataRequestTopic(topic_id=None, name=f"u{number}") for number in range(count)
        )
    }


def list_offsets(count: int) -> dict[str, Any]:
    wire = module(2, 7)
    partitions = tuple(
        wire.ListOffsetsPartition(partition_index=number, current_leader_epoch=-1, timestamp=-1)
        for number in range(count)
    )
    topic = wire.ListOffsetsTopic(name="u", partitions=partitions)
    return {"replica_id": -1, "isolation_level": 0, "topics": (topic,)}


def describe_partitions(count: int) -> dict[str, Any]:
    wire = module(75, 0)
    return {
        "topics": tuple(wire.TopicRequest(name=f"u{number}") for number in range(count)),
        "response_partition_limit": 2_000,
        "cursor": None,
    }


def write_markers(count: int) -> dict[str, Any]:
    wire = module(27, 1)
    topic = wire.WritableTxnMarkerTopic(name="__consumer_offsets", partition_indexes=(0, 1))
    return {
        "markers": tuple(
            wire.WritableTxnMarker(
                producer_id=number,
                producer_epoch=0,
                transaction_result=False,
                topics=(topic,),
                coordinator_epoch=0,
            )
            for number in range(count // 2)
        )
    }


CASES: tuple[tuple[int, int, Callable[[int], dict[str, Any]]], ...] = (
    (9, 8, ask_offsets),
    (15, 5, lambda count: {"groups": name_groups(count)}),
    (69, 1, lambda count: {"group_ids": name_groups(count)}),
    (10, 4, lambda count: {"key_type": 0, "coordinator_keys": name_groups(count)}),
    (9, 8, fetch_groups),
    (42, 2, lambda count: {"groups_names": name_groups(count)}),
    (3, 12, ask_metadata),
    (2, 7, list_offsets),
    (75, 0, describe_partitions),
    (27, 1, write_markers),
)
IDS = [
    f"{number}-{response_type(key, version).__name__}"
    for number, (key, version, _) in enumerate(CASES)
]


def run_counted(steps: Steps[Any]) -> tuple[int, Any]:
    """How often the steps yield, and their result."""
    turns = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return turns, end.value
        turns += 1


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_what_is_decoded_in_slices_is_the_same(case: Any) -> None:
    key, version, fields = case
    request = make_request(key, version, **fields(COUNT))
    target = request_type(key, version)
    data = encode(target, request)
    assert len(data) >= LEAST_BYTES
    expected = decode(target, data, 0, len(data), ELEMENTS)
    turns, found = run_counted(decode_in_slices(target, data, 0, len(data), ELEMENTS))
    assert found == expected
    assert turns >= COUNT // 2 // SLICE
    with pytest.raises(DecodeError, match="more array elements"):
        run_at_once(decode_in_slices(target, data, 0, len(data), COUNT // 2 - 1))


@pytest.mark.parametrize("version", [7, 8, 10])
@pytest.mark.parametrize(("topics", "partitions"), [(1, MANY), (MANY, 0), (MANY // 2, 1)])
def test_a_commit_of_many_is_decoded_in_slices(version: int, topics: int, partitions: int) -> None:
    """The hand-written decoder reads an allowed commit at once; a refused one is unbounded."""
    body = make_commit(version, topics, partitions)
    at_once = make_commit_decoder(version, ELEMENTS)(body, 0, len(body))
    steps = make_long_commit_decoder(version, ELEMENTS).read(body, 0, len(body))
    turns, found = run_counted(steps)
    assert found == at_once
    assert turns >= MANY // SLICE - 1


@pytest.mark.parametrize("version", [0, 1])
def test_a_heartbeat_of_many_is_decoded_in_slices(version: int) -> None:
    target = request_type(HEARTBEAT, version)
    topic = next(row for row in compute_fields(target) if row.name == "topic_partitions").entity
    owned = tuple(
        make_entity(topic, topic_id=number.to_bytes(16, "big"), partitions=(2, 1, 2))
        for number in range(1, COUNT)
    )
    said = {"group_id": "g", "member_id": "m", "subscribed_topic_names": name_groups(COUNT)}
    body = encode(target, make_entity(target, topic_partitions=(*owned, owned[0]), **said))
    at_once = make_heartbeat_decoder(version, ELEMENTS)(body, 0, len(body))
    steps = make_long_heartbeat_decoder(version, ELEMENTS).read(body, 0, len(body))
    turns, found = run_counted(steps)
    assert found == at_once
    assert found.subscribed_topic_names == name_groups(COUNT)
    assert [each.partitions for each in found.topic_partitions] == [(1, 2)] * (COUNT - 1)
    assert turns >= 2 * (COUNT // SLICE - 1)


@pytest.mark.parametrize("topics", [1, 20])
def test_a_heartbeat_of_many_partitions_is_decoded_in_slices(topics: int) -> None:
    """A group may have few topics and very many partitions of each."""
    target = request_type(HEARTBEAT, 1)
    topic = next(row for row in compute_fields(target) if row.name == "topic_partitions").entity
    numbers = tuple(range(MANY // topics))
    owned = tuple(
        make_entity(topic, topic_id=number.to_bytes(16, "big"), partitions=numbers)
        for number in range(1, topics + 1)
    )
    body = encode(target, make_entity(target, group_id="g", member_id="m", topic_partitions=owned))
    steps = make_long_heartbeat_decoder(1, ELEMENTS).read(body, 0, len(body))
    turns, found = run_counted(steps)
    assert [each.partitions for each in found.topic_partitions] == [numbers] * topics
    assert turns >= MANY // SLICE - 1


def make_entity(target: Any, **fields: Any) -> Any:
    return target(**({row.name: row.default for row in compute_fields(target)} | fields))


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize(("topics", "partitions"), [(MANY, 1), (1, MANY)])
def test_a_transactional_commit_of_many_is_decoded_in_slices(
    version: int, topics: int, partitions: int
) -> None:
    target = request_type(TXN_COMMIT, version)
    topic = next(field for field in compute_fields(target) if field.name == "topics").entity
    row = next(field for field in compute_fields(topic) if field.name == "partitions").entity
    made = tuple(
        make_entity(
            topic,
            name=f"t{number}",
            partitions=tuple(
                make_entity(row, partition_index=each, committed_offset=7, committed_metadata="m")
                for each in range(partitions)
            ),
        )
        for number in range(topics)
    )
    said = {"transactional_id": "x", "group_id": "g", "producer_id": 7, "producer_epoch": 1}
    body = encode(target, make_entity(target, topics=made, **said))
    at_once = k28_txn_offset_commit.make_decoder(version, ELEMENTS)(body, 0, len(body))
    steps = k28_txn_offset_commit.make_long_decoder(version, ELEMENTS).read(body, 0, len(body))
    turns, found = run_counted(steps)
    assert found == at_once
    assert sum(len(topic.partitions) for topic in found.topics) == topics * partitions
    assert turns >= 2 * (MANY // SLICE - 1)


def test_the_turn_that_a_long_commit_comes_in_does_not_decode_it() -> None:
    gateway = Gateway()
    door = gateway.connect()
    for version in range(5, 11):
        door.send(frame(COMMIT, version, version, make_commit(version, 1, 20_000)))
        assert not door.connection.unanswered
        gateway.clock.advance(1)
        assert [int.from_bytes(answer[:4], "big") for answer in door.frames()] == [version]


def test_a_page_that_begins_nowhere_is_refused_in_slices() -> None:
    cursor = module(75, 0).Cursor(topic_name="nobody's", partition_index=0)
    request = make_request(75, 0, **describe_partitions(COUNT) | {"cursor": cursor})
    turns, answer = run_counted(k75_describe_topic_partitions._describe(mock.Mock(), request))
    assert {topic.error_code for topic in answer.topics} == {ErrorCode.INVALID_REQUEST}
    assert len(answer.topics) == COUNT
    # To sort the names, to see each of them once, and to answer for each.
    assert turns >= 3 * (COUNT // long_answers.SLICE) - 1


class CountedSlices(Slices):
    """Counts the finished slices."""

    slices = 0

    def _step(self, work: Any) -> bool:
        CountedSlices.slices += 1
        return super()._step(work)


@pytest.mark.parametrize("case", CASES, ids=IDS)
async def test_a_request_of_many_things_takes_as_many_turns(
    case: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decoding alone takes six iterations; handling each item and its response takes more."""
    key, version, fields = case
    monkeypatch.setattr("gateway.wire_server.Slices", CountedSlices)
    monkeypatch.setattr(CountedSlices, "slices", 0)
    async with run_rig() as rig, await rig.connect() as client:
        client.send(key, version, **fields(COUNT))
        await client.read(key, version, within_s=60.0)
    decoding = COUNT // SLICE
    assert CountedSlices.slices > 2 * decoding


async def test_requests_that_come_behind_one_are_answered_behind_it() -> None:
    async with run_rig() as rig, await rig.connect() as client:
        first = client.send(DELETE_GROUPS, 2, groups_names=name_groups(COUNT))
        second = client.send(VERSIONS, 0)
        third = client.send(DELETE_GROUPS, 2, groups_names=("g",))
        correlations = [await read_correlation(client) for _ in range(3)]
        assert correlations == [first, second, third]


async def read_correlation(client: Connection) -> int:
    return int.from_bytes((await client.read_frame(60.0))[:4], "big")


def delete_many() -> Any:
    return make_request(DELETE_GROUPS, 2, groups_names=name_groups(COUNT))


def test_a_damaged_request_is_refused_in_whichever_slice_it_is() -> None:
    gateway = Gateway()
    door = gateway.connect()
    whole = frame(DELETE_GROUPS, 2, 1, delete_many())
    assert whole.endswith(b"\x07g11999\x00")
    door.send(whole[:-8] + b"\x7fg11999\x00")
    assert door.transport.is_open, "not known yet"
    gateway.clock.advance(1)
    assert not door.transport.is_open
    assert gateway.shared.refusals.counts == {"malformed": 1}


def test_nothing_is_decoded_for_who_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    gateway = Gateway(with_settings())
    door = gateway.connect()
    door.send(frame(DELETE_GROUPS, 2, 1, delete_many()))
    door.lose()
    monkeypatch.setattr(decoding_in_slices, "compile_element_reader", None)
    gateway.clock.advance(1)
    assert not gateway.coordinator.commands
