"""What a start has left unread of topics is read in short turns, whoever asks for it first."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import crc32c
import pytest

from gateway.codec.kio_schema import compute_fields, request_type
from gateway.topics.log import segment
from gateway.topics.log.layout import compute_partition_path
from gateway.topics.log.open_files import OpenFiles
from gateway.topics.log.partition_log import PRODUCERS_SUFFIX, PartitionLog
from gateway.topics.log.produced import check_batch
from gateway.topics.topic_catalogue import PartitionKey
from model.errors import ErrorCode
from storage.codec.batch_encoding import encode_batch
from storage.codec.batches import HEADER_SIZE
from storage.log.compression import compress
from tests.cost.server import cost_server, topic_id_of
from tests.cost.test_compaction import BATCHES_MAX, NOW_MS, SETTINGS
from tests.cost.turns import Counted, check_law

N: Final = 4 * segment.LOAD_BATCHES
TOPIC: Final = topic_id_of("foo")
FETCH, FETCH_VERSION = 1, 18

Request = tuple[int, int, dict[str, Any]]


def fill(folder: Path, batches: int, partition: int = 0) -> None:
    """One segment of the smallest batches that there are, and a newer one."""
    path = compute_partition_path(folder, PartitionKey(TOPIC, partition))
    log = PartitionLog(path, OpenFiles(4), SETTINGS, 0)
    for number in range(batches + 1):
        if number == batches:
            log._roll()
        data = encode_batch(0, [(b"", None)], NOW_MS + number)
        log.append(check_batch(data, SETTINGS.message_max_bytes, NOW_MS + number))


def fill_without_producers(folder: Path, batches: int) -> None:
    """So that all of it is read when the partition is opened."""
    fill(folder, batches)
    for path in folder.glob(f"**/*{PRODUCERS_SUFFIX}"):
        path.unlink()


def fill_liars(folder: Path, batches: int) -> None:
    """Compressed batches of 100 records whose headers promise a timestamp that none of them has."""
    path = compute_partition_path(folder, PartitionKey(TOPIC, 0))
    log = PartitionLog(path, OpenFiles(4), SETTINGS, 0)
    plain = encode_batch(0, [(b"", b"")] * 100, NOW_MS)
    data = bytearray(plain[:HEADER_SIZE] + compress(1, plain[HEADER_SIZE:]))
    struct.pack_into(">i", data, 8, len(data) - 12)
    data[22] = 1
    struct.pack_into(">q", data, 35, NOW_MS + 1)
    struct.pack_into(">I", data, 17, crc32c.crc32c(bytes(data[21:])))
    for _ in range(batches):
        log.append(check_batch(bytes(data), SETTINGS.message_max_bytes, NOW_MS))


def make(entity: Any, values: dict[str, Any]) -> dict[str, Any]:
    """The fields of an entity, with rows as entities, and defaults."""
    made = {field.name: field.default for field in compute_fields(entity)} | values
    for field in compute_fields(entity):
        if field.entity is not None and field.name in values:
            rows = values[field.name]
            made[field.name] = tuple(field.entity(**make(field.entity, row)) for row in rows)
    return made


def ask(key: int, version: int, **fields: Any) -> Request:
    return key, version, make(request_type(key, version), fields)


def fetch(offset: int, partitions: int = 1) -> Request:
    rows = [
        {"partition": number, "fetch_offset": offset, "partition_max_bytes": 8 << 20}
        for number in range(partitions)
    ]
    topics = [{"topic_id": TOPIC, "partitions": rows}]
    return ask(FETCH, FETCH_VERSION, max_wait=0, max_bytes=1 << 28, topics=topics)


def list_offsets(timestamp: int) -> Request:
    row = {"partition_index": 0, "timestamp": timestamp, "current_leader_epoch": -1}
    return ask(2, 11, replica_id=-1, topics=[{"name": "foo", "partitions": [row]}])


def produce() -> Request:
    row = {"index": 0, "records": encode_batch(0, [(b"k", b"v")], NOW_MS)}
    return ask(0, 13, acks=-1, topic_data=[{"topic_id": TOPIC, "partition_data": [row]}])


def measure(
    folder: Path, prepare: Callable[[Path, int], None], request: Callable[[int], Request]
) -> Callable[[int], Counted]:
    runs = iter(range(100))

    def run(count: int) -> Counted:
        place = folder / str(next(runs))
        with cost_server(place) as server:
            server.create(1, "foo")
            prepare(place, count)
            key, version, fields = request(count)
            counted = server.count(key, version, **fields)
            ((_, answer),) = counted.kept
            rows = getattr(answer, "responses", None) or answer.topics
            rows = getattr(rows[0], "partitions", None) or rows[0].partition_responses
            assert rows[0].error_code == ErrorCode.NONE
            counted.kept = []
            return counted

    return run


@pytest.mark.parametrize(
    ("request_of", "prepare"),
    [
        pytest.param(lambda count: fetch(count - 1), fill, id="end"),
        pytest.param(lambda count: fetch(0), fill, id="all"),
        pytest.param(lambda count: list_offsets(NOW_MS + count - 1), fill, id="timestamp"),
        pytest.param(lambda count: list_offsets(-3), fill, id="largest-timestamp"),
        pytest.param(lambda _: list_offsets(NOW_MS + 1), fill_liars, id="promised-timestamp"),
        pytest.param(fetch, fill_without_producers, id="fetch-opens"),
        pytest.param(lambda _: list_offsets(-1), fill_without_producers, id="list-opens"),
        pytest.param(lambda _: produce(), fill_without_producers, id="produce-opens"),
    ],
)
def test_what_a_start_has_left_unread_is_read_in_short_turns(
    request_of: Callable[[int], Request], prepare: Callable[[Path, int], None], tmp_path: Path
) -> None:
    n = N // 4 if prepare is fill_liars else N
    check_law(measure(tmp_path, prepare, request_of), n, BATCHES_MAX)


def test_for_who_goes_away_nothing_more_is_read(tmp_path: Path) -> None:
    with cost_server(tmp_path) as server:
        server.create(1, "foo")
        fill(tmp_path, N)
        key, version, fields = fetch(0)
        server.door.request(key, version, 1, **fields)
        for _ in range(3):
            server.loop.count(lambda: None, lambda: True)
        (part, _) = server.topics._logs._logs[PartitionKey(TOPIC, 0)].segments
        assert not part.is_loaded
        server.door.connection.connection_lost(None)
        read_to = part._loaded_to
        for _ in range(10):
            server.loop.count(lambda: None, lambda: True)
        assert part._loaded_to == read_to
        assert not server.gateway.shared.node.slices.is_busy
        assert server.door.transport.written == b""
