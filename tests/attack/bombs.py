"""Batches of records that are small on the wire and large when they are unpacked."""

from __future__ import annotations

import time

import cramjam

from tests.attack.stand import Attack, Target
from tests.fuzz.records import compress, make_record, seal_batch
from tests.support.wire.blocking import Client

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
_UNPACKED = 200 << 20


def produce(client: Client, topic: str, batch: bytes) -> int:
    answer = client.ask(
        0,
        9,
        acks=1,
        timeout=10_000,
        topic_data=[{"name": topic, "partition_data": [{"index": 0, "records": batch}]}],
    )
    return int(answer.responses[0].partition_responses[0].error_code)


def _create(client: Client, topic: str) -> None:
    topics = [
        {
            "name": topic,
            "num_partitions": 1,
            "replication_factor": 1,
            "configs": [{"name": "cleanup.policy", "value": "compact"}],
        }
    ]
    assert not client.ask(19, 5, topics=topics, timeout=10_000).topics[0].error_code


def _make_bombs() -> list[bytes]:
    zeros = make_record(0, b"a", bytes(_UNPACKED))
    small = [compress(codec, zeros) for codec in (GZIP, LZ4, ZSTD)]
    # Snappy packs 1 to 20: what fits into a batch.
    fits = compress(SNAPPY, make_record(0, b"a", bytes(16 << 20)))
    crowd = b"".join(make_record(number, b"", None) for number in range(300_000))
    many = bytes(cramjam.zstd.compress(crowd))
    batches = [
        seal_batch(packed, 1, attributes=codec)
        for codec, packed in zip((GZIP, LZ4, ZSTD, SNAPPY), (*small, fits), strict=True)
    ]
    return [*batches, seal_batch(many, 300_000, attributes=ZSTD)]


def produce_bombs(target: Target, strength: int) -> None:
    """Into a compacted topic, in every codec, together with enough to have it compacted."""
    bombs = _make_bombs()
    client = Client(target.kafka)
    _create(client, "compacted")
    codes: dict[int, int] = {}
    for _ in range(10 * strength):
        for bomb in bombs:
            code = produce(client, "compacted", bomb)
            codes[code] = codes.get(code, 0) + 1
    target.notes.append(f"answers by error code: {codes}")
    for number in range(300):
        packed = compress(ZSTD, make_record(0, b"k", bytes(900_000)))
        batch = seal_batch(packed, 1, attributes=ZSTD)
        assert produce(client, "compacted", batch) == 0, number
    for _ in range(8):
        produce(client, "compacted", seal_batch(make_record(0, b"f", bytes(900_000)), 1))
    time.sleep(2 * strength)
    client.close()


ATTACKS = (
    Attack(
        "decompression bombs",
        produce_bombs,
        settings={
            "gateway.topics.retention.bytes": 2_000_000,
            "gateway.topics.segment.bytes": 1_100_000,
        },
    ),
)
