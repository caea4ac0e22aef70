"""Requests about records, good and bad: Produce, ListOffsets, Fetch."""

from __future__ import annotations

import struct
import time
from typing import Any

import crc32c

from storage.codec.batch_encoding import encode_batch
from storage.codec.batches import HEADER_SIZE
from tests.unit.gateway.apis.prober import UNKNOWN_ID, Probe, Prober

T = 1_700_000_000_000


def batch(count: int = 1, timestamp_ms: int = T, **producer: int) -> bytes:
    """A batch as a producer sends it."""
    return encode_batch(0, [(b"k", b"v")] * count, timestamp_ms, leader_epoch=-1, **producer)


def producer(sequence: int, count: int = 2, producer_id: int = 100, epoch: int = 0) -> bytes:
    """A batch of an idempotent producer."""
    return batch(count, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)


def patched(data: bytes, position: int, layout: str, value: int) -> bytes:
    """A batch with one field changed and a CRC that fits."""
    out = bytearray(data)
    struct.pack_into(layout, out, position, value)
    if position > 20:
        struct.pack_into(">I", out, 17, crc32c.crc32c(bytes(out[21:])))
    return bytes(out)


def with_body(body: bytes, count: int = 1) -> bytes:
    """A batch whose records are these bytes."""
    data = patched(batch(count)[:HEADER_SIZE] + body, 8, ">i", HEADER_SIZE + len(body) - 12)
    return patched(data, 57, ">i", count)


def sized(size: int) -> bytes:
    """A good batch of about this many bytes."""
    value = b"v" * (size - 90)
    return encode_batch(0, [(b"k", value)], T, leader_epoch=-1)


def produce(
    records: bytes,
    *,
    partition: int = 0,
    version: int = 9,
    acks: int = -1,
    name: str = "produced",
    transactional_id: str | None = None,
) -> Probe:
    """One batch to one partition."""
    data = [{"index": partition, "records": records}]

    def probe(prober: Prober) -> Any:
        return prober.ask(
            "produce",
            version,
            transactional_id=transactional_id,
            acks=acks,
            timeout=3_000,
            topic_data=[{"name": name, "partition_data": data}],
        )

    return probe


def produce_by_id(name: str | None) -> Probe:
    """Version 13, which has topic ids."""

    def probe(prober: Prober) -> Any:
        topic_id = prober.ids.get(name, UNKNOWN_ID) if name is not None else None
        data = [{"index": 0, "records": batch()}]
        return prober.ask(
            "produce",
            13,
            transactional_id=None,
            acks=1,
            timeout=3_000,
            topic_data=[{"topic_id": topic_id, "partition_data": data}],
        )

    return probe


def future() -> bytes:
    """A batch two hours ahead."""
    return batch(2, timestamp_ms=int(time.time() * 1000) + 7_200_000)


def produce_probes() -> dict[str, Probe]:
    good, two = batch(3), batch(2)
    return {
        "produce three": produce(good),
        "nothing": produce(b""),
        "half a header": produce(good[:30]),
        "a byte missing": produce(good[:-1]),
        "two batches": produce(good + good),
        "three bytes behind": produce(good + b"abc"),
        "zeros behind": produce(good + bytes(70)),
        "base offset 5": produce(patched(good, 0, ">q", 5)),
        "wrong crc": produce(patched(good, 17, ">I", 1)),
        "format v0": produce(patched(good, 16, ">b", 0)),
        "format v1": produce(patched(good, 16, ">b", 1)),
        "format v3": produce(patched(good, 16, ">b", 3)),
        "length 5": produce(patched(good, 8, ">i", 5)),
        "length 40": produce(patched(good, 8, ">i", 40)),
        "length -1": produce(patched(good, 8, ">i", -1)),
        "control": produce(patched(good, 21, ">h", 0x20)),
        "transactional": produce(patched(producer(0), 21, ">h", 0x10)),
        "transactional id": produce(good, transactional_id="t"),
        "append time": produce(patched(good, 21, ">h", 8)),
        "compression 5": produce(patched(good, 21, ">h", 5)),
        "zstd in v6": produce(patched(good, 21, ">h", 4), version=6),
        "count 3 of 2": produce(patched(patched(two, 57, ">i", 3), 23, ">i", 2)),
        "count 1 of 2": produce(patched(patched(two, 57, ">i", 1), 23, ">i", 0)),
        "last delta 5 of 2": produce(patched(two, 23, ">i", 5)),
        "count 0": produce(with_body(b"", 0)),
        "count -1": produce(patched(two, 57, ">i", -1)),
        "last delta -1": produce(patched(two, 23, ">i", -1)),
        "record too short": produce(with_body(b"\x06\0\0\0")),
        "record of negative length": produce(with_body(b"\x01\0\0\0")),
        "offset delta 7": produce(with_body(b"\x10\0\0\x0e\x02k\x02v\0")),
        "too large": produce(sized(1_100_000)),
        "large": produce(sized(1_048_500)),
        "from the future": lambda prober: produce(future())(prober),
        "timestamp -1": produce(batch(timestamp_ms=-1)),
        "timestamp -5": produce(batch(timestamp_ms=-5)),
        "largest timestamp too low": produce(patched(good, 35, ">q", 5)),
        "largest timestamp too high": produce(patched(good, 35, ">q", T + 100)),
        "sequence 0": produce(producer(0)),
        "sequence 0 again": produce(producer(0)),
        "sequence 5": produce(producer(5)),
        "sequence 0 of another length": produce(producer(0, 1)),
        "sequence 2": produce(producer(2)),
        "new epoch at 3": produce(producer(3, epoch=1)),
        "new epoch at 0": produce(producer(0, epoch=1)),
        "old epoch": produce(producer(4)),
        "unknown producer at 7": produce(producer(7, producer_id=101)),
        "producer without sequence": produce(producer(-1, producer_id=102)),
        "producer without epoch": produce(producer(0, producer_id=103, epoch=-1)),
        "acks 2": produce(good, acks=2),
        "acks 1": produce(good, acks=1),
        "partition 9": produce(good, partition=9),
        "partition -1": produce(good, partition=-1),
        "unknown topic": produce(good, name="nope"),
        "acks 0 to an unknown topic": produce(good, name="nope", acks=0),
        **{f"produce v{version}": produce(good, version=version) for version in range(3, 13)},
        "by id": produce_by_id("produced"),
        "by unknown id": produce_by_id("nope"),
        "by zero id": produce_by_id(None),
    }


def list_offsets(
    timestamp: int,
    *,
    version: int = 11,
    partition: int = 0,
    epoch: int = -1,
    name: str = "produced",
    isolation: int = 0,
    replica: int = -1,
    times: int = 1,
) -> Probe:
    """One partition, or the same one several times."""
    asked: dict[str, Any] = {"partition_index": partition, "timestamp": timestamp}
    if version >= 4:
        asked["current_leader_epoch"] = epoch
    fields: dict[str, Any] = {} if version < 10 else {"timeout": 1_000}
    if version >= 2:
        fields["isolation_level"] = isolation
    topics = [{"name": name, "partitions": [asked] * times}]
    return lambda prober: prober.ask(
        "list_offsets", version, replica_id=replica, topics=topics, **fields
    )


def list_offsets_probes() -> dict[str, Probe]:
    probes: dict[str, Probe] = {}
    for timestamp in (-1, -2, -3, -4, -5, -6, -7, -100, 0, T, T + 1, 2 * T):
        probes[f"offset at {timestamp}"] = list_offsets(timestamp)
        probes[f"offset at {timestamp}, empty"] = list_offsets(timestamp, partition=1)
    for version, timestamp in ((6, -3), (7, -4), (8, -5), (10, -6), (7, -3), (8, -4), (9, -5)):
        probes[f"offset at {timestamp} in v{version}"] = list_offsets(timestamp, version=version)
    probes |= {f"end in v{version}": list_offsets(-1, version=version) for version in range(1, 12)}
    probes |= {f"end at epoch {epoch}": list_offsets(-1, epoch=epoch) for epoch in (0, 1, -2)}
    return probes | {
        "end of partition 9": list_offsets(-1, partition=9),
        "end of unknown topic": list_offsets(-1, name="nope"),
        "end, committed": list_offsets(-1, isolation=1),
        "end, isolation 5": list_offsets(-1, isolation=5),
        "end twice": list_offsets(-1, times=2),
        "end for replica 5": list_offsets(-1, replica=5),
    }


def fetch(
    offset: int,
    *,
    version: int = 12,
    partition: int = 0,
    name: str | None = "fetched",
    partition_max_bytes: int = 1 << 20,
    max_bytes: int = 1 << 20,
    max_wait: int = 50,
    min_bytes: int = 1,
    session: tuple[int, int] = (0, -1),
    epoch: int = -1,
    isolation: int = 0,
    replica: int = -1,
) -> Probe:
    """One partition."""
    asked: dict[str, Any] = {
        "partition": partition,
        "fetch_offset": offset,
        "partition_max_bytes": partition_max_bytes,
    }
    fields: dict[str, Any] = {}
    if version >= 9:
        asked["current_leader_epoch"] = epoch
    if version <= 14:
        fields["replica_id"] = replica
    elif replica != -1:
        fields["replica_state"] = {"replica_id": replica, "replica_epoch": 1}
    if version >= 7:
        fields |= {"session_id": session[0], "session_epoch": session[1]}
        fields["forgotten_topics_data"] = []
    if version >= 11:
        fields["rack_id"] = ""

    def probe(prober: Prober) -> Any:
        wanted: dict[str, Any] = {"topic": name}
        if version >= 13:
            wanted = {"topic_id": name if name is None else prober.ids.get(name, UNKNOWN_ID)}
        return prober.ask(
            "fetch",
            version,
            max_wait=max_wait,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            isolation_level=isolation,
            topics=[{**wanted, "partitions": [asked]}],
            **fields,
        )

    return probe


def fetch_probes() -> dict[str, Probe]:
    return {
        **{f"fill {count}": produce(batch(count), name="fetched") for count in (2, 1, 3)},
        **{f"fetch v{version}": fetch(0, version=version) for version in range(4, 19)},
        "fetch within a batch": fetch(1),
        "fetch at the end": fetch(6),
        "fetch beyond the end": fetch(7),
        "fetch at -1": fetch(-1),
        "fetch 10 bytes": fetch(0, partition_max_bytes=10),
        "fetch 0 bytes": fetch(0, partition_max_bytes=0),
        "fetch of 0 bytes in all": fetch(0, max_bytes=0),
        "fetch of -1 bytes in all": fetch(0, max_bytes=-1),
        "fetch one batch": fetch(0, partition_max_bytes=len(batch(2)) + 20),
        "fetch committed": fetch(0, isolation=1),
        "fetch isolation 5": fetch(0, isolation=5),
        "fetch an empty partition": fetch(0, partition=1),
        "fetch an empty partition at once": fetch(0, partition=1, max_wait=0),
        "fetch a negative wait": fetch(0, partition=1, max_wait=-1),
        "fetch no bytes at least": fetch(0, partition=1, min_bytes=0, max_wait=60_000),
        "fetch partition 9": fetch(0, partition=9),
        "fetch an unknown topic": fetch(0, name="nope"),
        "fetch an unknown id": fetch(0, version=13, name="nope"),
        "fetch the zero id": fetch(0, version=13, name=None),
        "fetch with session 0/0": fetch(0, session=(0, 0)),
        "fetch with session 7/3": fetch(0, session=(7, 3)),
        "fetch with session 0/3": fetch(0, session=(0, 3)),
        "fetch with session 7/0": fetch(0, session=(7, 0)),
        "fetch with session 7/-1": fetch(0, session=(7, -1)),
        **{f"fetch at epoch {epoch}": fetch(0, epoch=epoch) for epoch in (0, 1, -2)},
        "fetch as replica 5": fetch(0, replica=5),
        "fetch as replica 5 in v15": fetch(0, replica=5, version=15),
        "fetch as a debugging consumer": fetch(0, replica=-2),
        "fetch nothing": lambda prober: prober.ask(
            "fetch",
            12,
            replica_id=-1,
            max_wait=50,
            min_bytes=1,
            max_bytes=1_000,
            isolation_level=0,
            session_id=0,
            session_epoch=-1,
            forgotten_topics_data=[],
            rack_id="",
            topics=[],
        ),
    }
