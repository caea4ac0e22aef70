"""One request of very many things, of arrays that claim more than they have, of odd sizes."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator, Sequence
from typing import Any

from gateway.codec.kio_schema import request_type
from tests.attack.bombs import produce
from tests.attack.flood import Flood
from tests.attack.stand import Attack, Target
from tests.attack.wire_floods import VERSIONS
from tests.fuzz.records import make_record, seal_batch
from tests.fuzz.wire_bytes import varint
from tests.support.wire.blocking import Client
from tests.support.wire.frames import frame, make_frame

_MANY = 200_000
_CLAIMS = (0x7FFF_FFFF, 0x7FFF_FFFE, 1_000_000, 250_001)


def _partitions(name: str, count: int, **fields: Any) -> list[dict[str, Any]]:
    return [{name: number % 20_000, **fields} for number in range(count)]


def _list_requests_of_partitions(many: int) -> Iterator[bytes]:
    numbers = tuple(number % 20_000 for number in range(many))
    yield make_frame(
        8,
        9,
        group_id="wide",
        generation_id_or_member_epoch=-1,
        topics=[
            {
                "name": "wide",
                "partitions": _partitions("partition_index", many, committed_offset=1),
            }
        ],
    )
    yield make_frame(
        9,
        9,
        groups=[
            {
                "group_id": "wide",
                "member_epoch": -1,
                "topics": [{"name": "wide", "partition_indexes": numbers}],
            }
        ],
    )
    yield make_frame(
        47,
        0,
        group_id="wide",
        topics=[{"name": "wide", "partitions": _partitions("partition_index", many)}],
    )
    yield make_frame(
        1,
        12,
        max_wait=0,
        min_bytes=0,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[
            {
                "topic": "wide",
                "partitions": _partitions("partition", many, partition_max_bytes=1),
            }
        ],
    )
    yield make_frame(2, 8, topics=[{"name": "wide", "partitions": _offsets(many)}])
    yield make_frame(
        27,
        1,
        markers=[
            {
                "producer_id": 1,
                "producer_epoch": 0,
                "topics": [{"name": "__consumer_offsets", "partition_indexes": numbers}],
            }
        ],
    )


def _list_requests_of_names(names: list[str]) -> Iterator[bytes]:
    yield make_frame(20, 5, topic_names=tuple(names), timeout=1_000)
    yield make_frame(
        19,
        5,
        validate_only=True,
        timeout=1_000,
        topics=[
            {"name": name, "num_partitions": 1, "replication_factor": 1} for name in names[:60_000]
        ],
    )
    yield make_frame(
        32,
        4,
        include_synonyms=True,
        resources=[
            {"resource_type": 2, "resource_name": name, "configuration_keys": None}
            for name in names
        ],
    )
    yield make_frame(10, 6, key_type=0, coordinator_keys=tuple(names))
    yield make_frame(15, 6, groups=tuple(names))
    yield make_frame(69, 1, group_ids=tuple(names))
    yield make_frame(42, 2, groups_names=tuple(names))
    yield make_frame(
        75, 0, topics=[{"name": name} for name in names], response_partition_limit=2_000
    )


def _offsets(many: int) -> list[dict[str, Any]]:
    return _partitions("partition_index", many, timestamp=-1)


def ask_for_very_many(target: Target, strength: int) -> None:
    """Each request that may name many things, with as many as the door lets in."""
    many = _MANY if strength > 1 else _MANY // 10
    names = [f"name-{number}" for number in range(many)]
    answered = 0
    for data in (*_list_requests_of_partitions(many), *_list_requests_of_names(names)):
        with Flood(target.kafka) as flood:
            # Who has sent a whole request may send large ones.
            flood.connect(1, VERSIONS + data)
            flood.read_until(1_000, 30)
            answered += flood.received > 1_000
            flood.run(0.2)
    target.notes.append(f"{answered} answered, the others refused")


def wait_for_very_many(target: Target, strength: int) -> None:
    """Fetches that wait, each for one partition again and again; one record ends all."""
    many = _MANY if strength > 1 else _MANY // 10
    client = Client(target.kafka)
    rows = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1}] * many
    data = make_frame(
        1,
        12,
        max_wait=2**31 - 1,
        min_bytes=1,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[{"topic": "orders", "partitions": rows}],
    )
    with Flood(target.kafka) as flood:
        flood.connect(60, VERSIONS + data)
        flood.run(10 * strength)
        assert produce(client, "orders", seal_batch(make_record(0, b"k", b"v"), 1)) == 0
        flood.read_until(1_000, 30)
        flood.run(2)
    client.close()


def claim_much(target: Target, strength: int) -> None:
    """Arrays that claim millions of elements in a few bytes."""
    frames = [_claim(key, version, claim) for key, version in _ARRAYS for claim in _CLAIMS]
    for _ in range(20 * strength):
        for data in frames:
            with Flood(target.kafka) as flood:
                flood.connect(1, data)
                flood.run(0.002)


_ARRAYS: Sequence[tuple[int, int]] = (
    (3, 1), (9, 1), (15, 0), (19, 2), (20, 1), (42, 0), (47, 0), (69, 0), (75, 0),
)  # fmt: skip


def _claim(key: int, version: int, claim: int) -> bytes:
    flexible = request_type(key, version).__flexible__
    count = varint(claim + 1) if flexible else struct.pack(">i", claim)
    # What comes before the array: a group id in two of them.
    head = b"\0\x01g" if key in (9, 47) else b""
    return frame(key, version, 1, head + count + b"\0" * 16)


def send_odd_sizes(target: Target, strength: int) -> None:
    """Frames of 2 GB, of none, of less than none, and what is no request."""
    for size in (2**31 - 1, -1, -(2**31), 0, 3, 104_857_601):
        for _ in range(50 * strength):
            with socket.create_connection(target.kafka, 10) as line:
                line.sendall(struct.pack(">i", size) + b"\0\x12\0\0" * 20)
    with Flood(target.kafka) as flood:
        flood.connect(50, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 100)
        flood.connect(50, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 100)
        flood.run(1)


_EVIL = (
    "(" * 2_000 + ")" * 2_000,
    "(a{1,1000}){1,1000}",
    "(.*)*(.*)*(.*)*x",
    "[\\p{L}]{1000}",
    "a" * 4_096,
    "(?i)" + "|".join(f"a{number}.*" for number in range(500)),
    "(?:a?){1000}a{1000}",
    "((((((.{1,10}){1,10}){1,10}){1,5})))",
    "x{0,100000}",
    "(?P<" + "n" * 1_000 + ">a)",
)


def subscribe_to_evil_patterns(target: Target, strength: int) -> None:
    """Patterns that cost much to compile or to match, beside many topics."""
    client = Client(target.kafka)
    topics = [
        {"name": f"a{'a' * 180}-{number}", "num_partitions": 1, "replication_factor": 1}
        for number in range(1_000)
    ]
    client.ask(19, 5, topics=topics, timeout=10_000)
    codes: dict[int, int] = {}
    for number in range(60 * strength):
        pattern = _EVIL[number % len(_EVIL)]
        if number >= len(_EVIL):
            pattern = f"(o|b|c){{1,50}}[a-z]{{0,60}}x{number}|a+.*{number}"
        answer = client.ask(
            68,
            1,
            group_id=f"evil-{number % 5}",
            member_id=f"m-{number}",
            member_epoch=0,
            rebalance_timeout=60_000,
            subscribed_topic_regex=pattern,
            topic_partitions=(),
        )
        codes[answer.error_code] = codes.get(answer.error_code, 0) + 1
    target.notes.append(f"answers by error code: {codes}")
    client.close()


ATTACKS = (
    Attack("requests of very many things", ask_for_very_many),
    Attack("fetches that wait for very many partitions", wait_for_very_many, peak_bytes=1 << 30),
    Attack("arrays that claim millions", claim_much),
    Attack("frames of odd sizes", send_odd_sizes),
    Attack("evil patterns", subscribe_to_evil_patterns),
)
