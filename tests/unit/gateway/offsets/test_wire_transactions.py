"""TxnOffsetCommit and WriteTxnMarkers over the wire, in all versions."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.codec.kio_schema import request_schema
from model.access.acls import Operation, ResourceType
from model.errors import ErrorCode
from model.ids import GroupId
from tests.support.authorizers import Rights
from tests.support.gateway.wire_rig import Rig, run_rig
from tests.support.gateway.wire_steps import FIND, UNPARKED, fetch, member_of
from tests.support.wire.connection import Connection
from tests.unit.gateway.groups.test_wire_deletion import delete_groups, list_groups

MARKERS, TXN_COMMIT = 27, 28
OFFSETS = "__consumer_offsets"
PRODUCER = 70


async def commit(
    client: Connection, version: int, group: str = "g", topic: str = "t", **fields: Any
) -> list[int]:
    """The codes for partitions 0, 1 and 9; offsets 5, 6 and 7."""
    wire = request_schema(TXN_COMMIT, version)
    rows = []
    for number, offset in ((0, 5), (1, 6), (9, 7)):
        row = {"partition_index": number, "committed_offset": offset, "committed_metadata": "m"}
        if version >= 2:
            row["committed_leader_epoch"] = 3
        rows.append(wire.TxnOffsetCommitRequestPartition(**row))
    topics = (wire.TxnOffsetCommitRequestTopic(name=topic, partitions=tuple(rows)),)
    answer = await client.ask(
        TXN_COMMIT,
        version,
        **{
            "transactional_id": "tx",
            "group_id": group,
            "producer_id": PRODUCER,
            "producer_epoch": 2,
            "topics": topics,
            **fields,
        },
    )
    return [row.error_code for found in answer.topics for row in found.partitions]


async def write_markers(
    client: Connection,
    partitions: tuple[int, ...],
    committed: bool = True,
    version: int = 2,
    topic: str = OFFSETS,
    **fields: Any,
) -> list[tuple[int, str, int, int]]:
    wire = request_schema(MARKERS, version)
    marker = wire.WritableTxnMarker(
        **{
            "producer_id": PRODUCER,
            "producer_epoch": 2,
            "transaction_result": committed,
            "topics": (wire.WritableTxnMarkerTopic(name=topic, partition_indexes=partitions),),
            "coordinator_epoch": 1,
            **fields,
        }
    )
    answer = await client.ask(MARKERS, version, markers=(marker,))
    return [
        (result.producer_id, found.name, row.partition_index, row.error_code)
        for result in answer.markers
        for found in result.topics
        for row in found.partitions
    ]


def partition_of(rig: Rig, group: str = "g") -> int:
    return rig.runtime.partition_of(GroupId(group))


@pytest.mark.parametrize("version", range(6))
async def test_offsets_wait_for_their_marker(version: int) -> None:
    async with run_rig() as rig, await rig.connect() as client:
        await rig.create_topic("t", 2)
        assert await commit(client, version) == [0, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert await list_groups(client) == ["g"]
        assert (await fetch(client, 9, "g"))["rows"][0][0] == -1
        unstable = await fetch_stable(client)
        assert unstable == [ErrorCode.UNSTABLE_OFFSET_COMMIT] * 2
        place = partition_of(rig)
        for marker_version in (1, 2):
            done = await write_markers(client, (place, place), version=marker_version)
            assert done == [(PRODUCER, OFFSETS, place, 0)]
        leader_epoch = 3 if version >= 2 else -1
        rows = (await fetch(client, 9, "g"))["rows"]
        assert rows == {0: (5, leader_epoch, "m", 0), 1: (6, leader_epoch, "m", 0)}
        assert await fetch_stable(client) == [0, 0]


async def fetch_stable(client: Connection) -> list[int]:
    wire = request_schema(9, 9)
    topic = wire.OffsetFetchRequestTopics(name="t", partition_indexes=(0, 1))
    group = wire.OffsetFetchRequestGroup(group_id="g", topics=(topic,))
    answer = await client.ask(9, 9, groups=(group,), require_stable=True)
    return [row.error_code for found in answer.groups[0].topics for row in found.partitions]


async def test_an_aborted_transaction_leaves_nothing() -> None:
    async with run_rig() as rig, await rig.connect() as client:
        await rig.create_topic("t", 2)
        await commit(client, 5)
        assert (await write_markers(client, (partition_of(rig),), committed=False))[0][3] == 0
        assert (await fetch(client, 9, "g"))["rows"][0][0] == -1
        assert await list_groups(client) == []


async def test_a_group_that_waits_for_a_marker_can_be_deleted() -> None:
    async with run_rig() as rig, await rig.connect() as client:
        await rig.create_topic("t", 2)
        await commit(client, 5)
        assert await delete_groups(client, "g") == [("g", 0)]
        assert (await write_markers(client, (partition_of(rig),)))[0][3] == 0
        assert (await fetch(client, 9, "g"))["rows"][0][0] == -1


async def test_who_may_commit_in_a_transaction() -> None:
    """Rows O1, O9 and O10."""
    async with run_rig(UNPARKED) as rig, await rig.connect() as client:
        await rig.create_topic("t", 2)
        epoch = await member_of(client, "g")
        assert await commit(client, 5, "") == [24, 24, 3], "the third is not there"
        assert await commit(client, 5, topic="zz") == [3] * 3
        for fields, code in (
            ({"generation_id": epoch, "member_id": "m"}, 0),
            ({"generation_id": epoch, "member_id": "m", "group_instance_id": "i"}, 0),
            ({}, ErrorCode.UNKNOWN_MEMBER_ID),
            ({"generation_id": 9, "member_id": "m"}, ErrorCode.ILLEGAL_GENERATION),
            ({"generation_id": epoch, "member_id": "zz"}, ErrorCode.UNKNOWN_MEMBER_ID),
            ({"producer_epoch": 1, "member_id": "m"}, ErrorCode.INVALID_PRODUCER_EPOCH),
        ):
            assert (await commit(client, 5, **fields))[0] == code, fields
        assert (await commit(client, 3, "none", generation_id=3, member_id="x"))[0] == 22


@pytest.mark.parametrize(
    "fields",
    [{"group_instance_id": "i"}, {"generation_id": -2}, {"member_id": "x"}],
    ids=["an instance", "an epoch below -1", "a member"],
)
async def test_who_says_anything_of_a_member_must_be_one(fields: dict[str, Any]) -> None:
    async with run_rig() as rig, await rig.connect() as client:
        await rig.create_topic("t", 2)
        assert await commit(client, 5) == [0, 0, 3]
        assert await commit(client, 5, **fields) == [0, 0, 3], "nobody is a member yet"
        await member_of(client, "g")
        unknown = ErrorCode.UNKNOWN_MEMBER_ID
        assert await commit(client, 5) == [unknown, unknown, 3]
        assert await commit(client, 5, **fields) == [unknown, unknown, 3]


@pytest.mark.parametrize("version", range(6))
async def test_a_topic_of_which_no_partition_is_committed_is_left_out(version: int) -> None:
    async with run_rig() as rig, await rig.connect() as client:
        await rig.create_topic("t", 2)
        wire = request_schema(TXN_COMMIT, version)
        fields = {"transactional_id": "tx", "producer_id": PRODUCER, "producer_epoch": 2}
        names = {"t": [], "none": ["none"]}
        for name, left in names.items():
            topics = (wire.TxnOffsetCommitRequestTopic(name=name, partitions=()),)
            answer = await client.ask(TXN_COMMIT, version, group_id="g", topics=topics, **fields)
            assert [topic.name for topic in answer.topics] == left


async def test_markers_of_what_is_not_here() -> None:
    async with run_rig() as rig, await rig.connect() as client:
        await rig.create_topic("t", 1)
        assert await write_markers(client, ()) == []
        assert await write_markers(client, (49, 50, -1)) == [
            (PRODUCER, OFFSETS, 49, 0),
            (PRODUCER, OFFSETS, 50, 3),
            (PRODUCER, OFFSETS, -1, 3),
        ]
        assert await write_markers(client, (0, 1), topic="t") == [
            (PRODUCER, "t", 0, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT),
            (PRODUCER, "t", 1, 3),
        ]
        assert await write_markers(client, (0,), topic="zz") == [(PRODUCER, "zz", 0, 3)]
        assert await write_markers(client, (0,), producer_id=-1) == [(-1, OFFSETS, 0, -1)]
        await commit(client, 5)
        place = partition_of(rig)
        assert await write_markers(client, (place,), producer_epoch=1) == [
            (PRODUCER, OFFSETS, place, ErrorCode.INVALID_PRODUCER_EPOCH)
        ]


async def test_rights_of_transactions() -> None:
    rights = Rights(
        (Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "denied"),
        (Operation.READ, ResourceType.GROUP, "secret"),
        (Operation.READ, ResourceType.TOPIC, "u"),
        (Operation.CLUSTER_ACTION, ResourceType.CLUSTER, "kafka-cluster"),
        (Operation.ALTER, ResourceType.CLUSTER, "kafka-cluster"),
    )
    async with run_rig(authorizer=rights) as rig, await rig.connect() as client:
        await rig.create_topic("t", 2)
        await rig.create_topic("u", 2)
        assert await commit(client, 5, transactional_id="denied") == [53] * 3
        assert await commit(client, 5, "secret") == [30] * 3
        assert await commit(client, 5, topic="u") == [29] * 3
        place = partition_of(rig)
        assert await write_markers(client, (place,)) == [(PRODUCER, OFFSETS, place, 31)]
        marker = request_schema(MARKERS, 2).WritableTxnMarker(
            producer_id=PRODUCER,
            producer_epoch=2,
            transaction_result=True,
            topics=(),
            coordinator_epoch=1,
        )
        [refused] = (await client.ask(MARKERS, 2, markers=(marker,))).markers
        assert (refused.producer_id, refused.topics) == (PRODUCER, ())
        rights.denied.discard((Operation.ALTER, ResourceType.CLUSTER, "kafka-cluster"))
        assert await write_markers(client, (place,)) == [(PRODUCER, OFFSETS, place, 0)]


@pytest.mark.parametrize("version", range(1, 7))
async def test_nobody_coordinates_transactions_here(version: int) -> None:
    async with run_rig() as rig, await rig.connect() as client:
        if version < 4:
            found = await client.ask(FIND, version, key="tx", key_type=1)
        else:
            answer = await client.ask(FIND, version, coordinator_keys=("tx",), key_type=1)
            (found,) = answer.coordinators
        assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


async def test_a_marker_of_an_older_coordinator_is_fenced() -> None:
    async with run_rig() as rig, await rig.connect() as client:
        await rig.create_topic("t", 2)
        place = partition_of(rig)
        assert (await write_markers(client, (place,), coordinator_epoch=3))[0][3] == 0
        await commit(client, 5)
        refused = await write_markers(client, (place,), coordinator_epoch=2)
        assert refused[0][3] == ErrorCode.TRANSACTION_COORDINATOR_FENCED
        assert await fetch_stable(client) == [ErrorCode.UNSTABLE_OFFSET_COMMIT] * 2
        assert (await write_markers(client, (place,), coordinator_epoch=3))[0][3] == 0
        assert await fetch_stable(client) == [0, 0]


async def test_a_marker_of_transaction_version_2_has_an_epoch_of_its_own() -> None:
    async with run_rig() as rig, await rig.connect() as client:
        await rig.create_topic("t", 2)
        place = partition_of(rig)
        await commit(client, 5)
        refused = await write_markers(client, (place,), transaction_version=2)
        assert refused[0][3] == ErrorCode.INVALID_PRODUCER_EPOCH
        done = await write_markers(client, (place,), transaction_version=2, producer_epoch=3)
        assert done[0][3] == 0
        again = await write_markers(client, (place,), transaction_version=2, producer_epoch=3)
        assert again[0][3] == 0, "a marker that is said again"
        assert await fetch_stable(client) == [0, 0]
