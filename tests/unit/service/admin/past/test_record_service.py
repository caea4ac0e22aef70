"""RecordService: all records of the log of a real Kafka, page by page, for who may see them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import grpc.aio
import pytest

from coordinator.runtime.authorizer import Authorizer
from coordinator.service.wire.paging import compute_page_token
from model.access.acls import Operation, ResourceType
from muster.v1 import record_pb2, record_pb2_grpc
from storage.codec.batches import decode_batch
from storage.codec.record_filters import RecordFilter
from storage.log.compression import decompress
from tests.golden.past_server import PastServer, import_golden, running_past_server
from tests.support.authorizers import Rights
from tests.support.service.stand import Stand
from tests.unit.service.admin.test_admin_service import info

GROUP = "o08-consumer-uniform"
CLASSIC_GROUP = "o01-classic-range"
PARTITION = 47
Ask = record_pb2.ListRecordsRequest


@asynccontextmanager
async def running(
    folder: Path, authorizer: Authorizer | None = None
) -> AsyncIterator[tuple[PastServer, record_pb2_grpc.RecordServiceAsyncStub]]:
    import_golden(folder)
    async with running_past_server(folder, authorizer=authorizer) as server:
        channel = grpc.aio.insecure_channel(server.target)
        try:
            yield server, record_pb2_grpc.RecordServiceStub(channel)
        finally:
            await channel.close(None)


async def list_all(
    stub: record_pb2_grpc.RecordServiceAsyncStub, request: Ask
) -> list[record_pb2.LogRecord]:
    records: list[record_pb2.LogRecord] = []
    while True:
        answer = await stub.ListRecords(request)
        records.extend(answer.records)
        request.page_token = answer.next_page_token
        if not request.page_token:
            return records


def read_offsets(server: PastServer, wanted: RecordFilter, partition: int) -> list[int]:
    """The same by reading the log from its beginning."""
    return [
        record.offset
        for data in server.store.read_log(partition)  # type: ignore[arg-type]
        for record in wanted.select(partition, decode_batch(data, decompress=decompress))
    ][::-1]


async def test_pages_have_what_a_dump_has(tmp_path: Path) -> None:
    async with running(tmp_path / "store") as (server, stub):
        for size in (3, 1_000):
            records = await list_all(stub, Ask(group_id=GROUP, page_size=size))
            expected = read_offsets(server, RecordFilter(GROUP), PARTITION)
            assert [record.offset for record in records] == expected
            assert len(expected) > 20
        for record in records:
            assert json.loads(record.key_json)
            assert not record.decode_error
            assert bool(record.value_json) == record.HasField("value")
        whole = await list_all(stub, Ask(log_partition=PARTITION))
        assert [each.offset for each in whole] == read_offsets(server, RecordFilter(), PARTITION)
        types = Ask(group_id=GROUP, types=["consumer_group_member_metadata", "1"])
        chosen = await list_all(stub, types)
        assert {each.type for each in chosen} == {
            "CONSUMER_GROUP_MEMBER_METADATA",
            "OFFSET_COMMIT",
        }


@pytest.mark.parametrize("group_id", [GROUP, CLASSIC_GROUP])
async def test_records_that_name_a_hidden_topic_are_left_out(tmp_path: Path, group_id: str) -> None:
    rights = Rights()
    async with running(tmp_path / "store", rights) as (_, stub):
        seen = await list_all(stub, Ask(group_id=group_id))
        topic = next(
            json.loads(each.key_json)["topic"] for each in seen if each.type == "OFFSET_COMMIT"
        )
        rights.denied.add((Operation.DESCRIBE, ResourceType.TOPIC, topic))
        left = await list_all(stub, Ask(group_id=group_id, page_size=4))
        assert 0 < len(left) < len(seen)
        assert not any(topic in each.key_json + each.value_json for each in left)
        # Members of classic groups subscribe in a protocol of their own.
        assert not any(topic.encode() in each.key + each.value for each in left)


@pytest.mark.parametrize(
    "request_",
    [
        Ask(group_id="g", since_ms=-1),
        Ask(group_id="g", until_ms=-1),
        Ask(group_id="g", before_offset=-1),
        Ask(group_id="g", log_partition=1),
        Ask(group_id="g", page_size=-1),
        Ask(group_id="g", types=["OFFSETS"]),
        Ask(group_id="g", types=["1"] * 65),
        Ask(group_id="g", page_token="x"),
        Ask(group_id="g", page_token=compute_page_token("1", ("h", 0, 0, 0, 0))),
        Ask(group_id="g", page_token=compute_page_token("-1", ("g", 0, 0, 0, 0))),
        Ask(group_id="g", page_token=compute_page_token("9" * 5_000, ("g", 0, 0, 0, 0))),
    ],
    ids=lambda request: str(request)[:50],
)
async def test_what_is_out_of_bounds_is_refused(tmp_path: Path, request_: Ask) -> None:
    async with running_past_server(tmp_path / "store") as server:
        channel = grpc.aio.insecure_channel(server.target)
        try:
            stub = record_pb2_grpc.RecordServiceStub(channel)
            code, _ = await info(stub.ListRecords(request_))
        finally:
            await channel.close(None)
    assert code is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_log_partition_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    async with running(tmp_path / "store") as (_, stub):
        for number in (-1, 1_000):
            code, detail = await info(stub.ListRecords(Ask(log_partition=number)))
            assert (code, detail.reason) == (
                grpc.StatusCode.NOT_FOUND,
                "UNKNOWN_TOPIC_OR_PARTITION",
            )


async def test_without_a_log_on_disk_nothing_is_listed(stand: Stand) -> None:
    stub = record_pb2_grpc.RecordServiceStub(stand.channel())
    code, _ = await info(stub.ListRecords(Ask(group_id="g")))
    assert code is grpc.StatusCode.UNIMPLEMENTED
