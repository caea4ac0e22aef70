"""The embedded protocol, byte for byte as Kafka 4.3.0 writes it."""

from __future__ import annotations

import base64
import gzip
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from muster.assignors.embedded import (
    NO_GENERATION,
    Assignment,
    StickyUserData,
    Subscription,
    TopicPartitions,
    decode_assignment,
    decode_cooperative_user_data,
    decode_sticky_user_data,
    decode_subscribed_topics,
    decode_subscription,
    encode_assignment,
    encode_cooperative_user_data,
    encode_sticky_user_data,
    encode_subscription,
    group_partitions,
    make_subscription,
)
from tests.support.assignors.cases import VECTORS

Line = Mapping[str, Any]


def read_lines(message: str) -> Iterator[Line]:
    with gzip.open(VECTORS / "embedded_protocol.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            if line["message"] == message:
                yield line


def from_base64(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def from_hex(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def read_topics(said: list[dict[str, Any]]) -> tuple[TopicPartitions, ...]:
    return tuple(TopicPartitions(each["topic"], tuple(each["partitions"])) for each in said)


def read_partitions(said: list[str]) -> list[tuple[str, int]]:
    """``topic1-2``: topic and partition."""
    split = (each.rpartition("-") for each in said)
    return [(topic, int(partition)) for topic, _, partition in split]


def check_all_versions(counts: Counter[int], each: int, versions: int = 4) -> None:
    assert counts == dict.fromkeys(range(versions), each)


def test_subscription_messages() -> None:
    versions: Counter[int] = Counter()
    for line in read_lines("ConsumerProtocolSubscription"):
        data, said = bytes.fromhex(line["bytesWithVersionPrefix"]), line["json"]
        subscription = Subscription(
            tuple(said["topics"]),
            from_base64(said["userData"]),
            read_topics(said.get("ownedPartitions", [])),
            said.get("generationId", NO_GENERATION),
            said.get("rackId"),
        )
        assert decode_subscription(data) == subscription
        assert decode_subscribed_topics(data) == subscription.topics
        assert encode_subscription(subscription, line["version"]) == data
        versions[line["version"]] += 1
    check_all_versions(versions, 15)


def test_assignment_messages() -> None:
    versions: Counter[int] = Counter()
    for line in read_lines("ConsumerProtocolAssignment"):
        data, said = bytes.fromhex(line["bytesWithVersionPrefix"]), line["json"]
        assignment = Assignment(
            read_topics(said["assignedPartitions"]), from_base64(said["userData"])
        )
        assert decode_assignment(data) == assignment
        assert encode_assignment(assignment, line["version"]) == data
        versions[line["version"]] += 1
    check_all_versions(versions, 15)


def test_what_kafkas_consumer_writes_as_its_subscription() -> None:
    versions: Counter[int] = Counter()
    for line in read_lines("ConsumerProtocol.serializeSubscription"):
        subscription = make_subscription(
            line["topics"],
            from_hex(line["userData"]),
            read_partitions(line["ownedInput"]),
            line["generationInput"],
            line["rackInput"],
        )
        data = bytes.fromhex(line["bytesWithVersionPrefix"])
        assert encode_subscription(subscription, line["version"]) == data
        assert encode_subscription(decode_subscription(data), line["version"]) == data
        versions[line["version"]] += 1
    check_all_versions(versions, 15)


def test_what_kafkas_leader_writes_as_assignment() -> None:
    versions: Counter[int] = Counter()
    for line in read_lines("ConsumerProtocol.serializeAssignment"):
        partitions = group_partitions(read_partitions(line["partitionsInput"]))
        assignment = Assignment(partitions, from_hex(line["userData"]))
        data = bytes.fromhex(line["bytesWithVersionPrefix"])
        assert encode_assignment(assignment, line["version"]) == data
        assert decode_assignment(data) == assignment
        versions[line["version"]] += 1
    check_all_versions(versions, 15)


def test_sticky_user_data() -> None:
    """Kafka writes topics in the order of a hash table, which is kept here."""
    versions: Counter[int] = Counter()
    for line in read_lines("StickyAssignorUserData"):
        data, version = bytes.fromhex(line["bytes"]), line["version"]
        read = decode_sticky_user_data(data)
        assert read.generation == line.get("generation", NO_GENERATION)
        found = [(each.topic, p) for each in read.partitions for p in each.partitions]
        assert sorted(found) == sorted(read_partitions(line["partitions"]))
        assert encode_sticky_user_data(read, version) == data
        as_old_leader = decode_sticky_user_data(data, highest_version=0)
        assert as_old_leader == StickyUserData(read.partitions, NO_GENERATION)
        versions[version] += 1
    check_all_versions(versions, 20, versions=2)


def test_cooperative_sticky_user_data() -> None:
    lines = list(read_lines("CooperativeStickyAssignorUserData"))
    assert len(lines) == 20
    for line in lines:
        data = bytes.fromhex(line["bytes"])
        assert decode_cooperative_user_data(data) == line["generation"]
        assert encode_cooperative_user_data(line["generation"]) == data
