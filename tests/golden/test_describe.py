"""Groups described at the time, and by the request, at which a real Kafka 4.3.0 described them.

The log is replayed up to the request that a client sent, the very bytes of the request go through
the door, and what comes out is what the broker answered: byte for byte for classic groups, and
but for the order of a hash map for consumer groups.
"""

from __future__ import annotations

import gzip
import json
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from coordinator.core.groups import group_description
from coordinator.runtime.api import Reply
from model.commands.command import Command
from model.commands.groups import ConsumerGroupDescribe, DescribeGroups
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, TopicId, TopicName
from model.responses.groups import ConsumerGroupDescribeResponse, DescribeGroupsResponse
from model.topics import Topic, TopicImage
from tests.golden.kafka_log import LogInTime, decode_uuid
from tests.support.gateway.entity_json import entity_to_json
from tests.support.gateway.wire_door import Gateway
from tests.support.storage.golden import GOLDEN
from tests.support.wire.frames import parse

DESCRIBE_GROUPS, CONSUMER_GROUP_DESCRIBE = 15, 69
LOADING, ELSEWHERE = 14, 16
IN_A_REBALANCE = ("PreparingRebalance", "CompletingRebalance")

Exchange = dict[str, Any]


class CoordinatorInTime:
    """Answers reads from the log as far as it was replayed."""

    def __init__(self, image: TopicImage) -> None:
        self.settings = CoordinatorSettings()
        self.image = image
        self.log = LogInTime(image)

    def submit(self, command: Command, reply: Reply) -> None:
        shard_of = self.log.shard_of
        match command:
            case DescribeGroups():
                reply(
                    DescribeGroupsResponse(
                        tuple(
                            group_description.describe_classic_group(shard_of(group_id), group_id)
                            for group_id in command.group_ids
                        )
                    )
                )
            case ConsumerGroupDescribe():
                reply(
                    ConsumerGroupDescribeResponse(
                        tuple(
                            group_description.describe_consumer_group(shard_of(group_id), group_id)
                            for group_id in command.group_ids
                        )
                    )
                )
            case _:
                raise AssertionError(command)


def load_exchanges(api_key: int) -> list[Exchange]:
    """What clients asked and the broker answered, each of one group, by the time of the request."""
    with gzip.open(GOLDEN / "wire" / "exchanges.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [row for row in map(json.loads, lines) if row["apiKey"] == api_key]
    return sorted(rows, key=lambda row: row["requestTs"])


def load_image(exchanges: list[Exchange]) -> TopicImage:
    """All topics that the broker named, also those that were deleted later."""
    names = {
        topic["topicId"]: topic["topicName"]
        for exchange in exchanges
        for group in exchange["responseJson"]["groups"]
        for member in group["members"]
        for kind in ("assignment", "targetAssignment")
        for topic in member.get(kind, {}).get("topicPartitions", ())
    }
    topics = [
        Topic(TopicName(name), TopicId(decode_uuid(text)), 1_000) for text, name in names.items()
    ]
    return TopicImage(1, {}, {topic.topic_id: topic for topic in topics})


def ask(gateway: Gateway, exchange: Exchange) -> bytes:
    """The answer to the recorded bytes, without its size."""
    door = gateway.connect()
    request = bytes.fromhex(exchange["request"])
    door.send(struct.pack(">i", len(request)) + request)
    # A description of many members is encoded in slices, in the next turns.
    gateway.clock.advance(1)
    (answer,) = door.frames()
    return answer


def compare(
    exchanges: list[Exchange], is_same: Callable[[Exchange, bytes], bool]
) -> Iterator[tuple[Exchange, bool]]:
    """Whether each answer is ours, at the request or as the log grew until the answer."""
    coordinator: Any = CoordinatorInTime(load_image(exchanges))
    gateway, log = Gateway(coordinator=coordinator), coordinator.log
    for exchange in exchanges:
        group_id = GroupId(exchange["responseJson"]["groups"][0]["groupId"])
        partition = log.shard_of(group_id).partition
        while log.advance(partition, exchange["requestTs"]):
            pass
        same = is_same(exchange, ask(gateway, exchange))
        while not same and log.advance(partition, exchange["responseTs"]):
            same = is_same(exchange, ask(gateway, exchange))
        yield exchange, same


def is_same_bytes(exchange: Exchange, answer: bytes) -> bool:
    return answer.hex() == exchange["response"]


def sort_all(shown: Any) -> Any:
    """Kafka shows members, topics and partitions in the order of hash maps."""
    if isinstance(shown, dict):
        return {name: sort_all(value) for name, value in shown.items()}
    if isinstance(shown, list | tuple):
        return sorted((sort_all(item) for item in shown), key=repr)
    return shown


def is_same_but_for_order(exchange: Exchange, answer: bytes) -> bool:
    ours, kafkas = (
        entity_to_json(parse(CONSUMER_GROUP_DESCRIBE, exchange["version"], data)[1])
        for data in (answer, bytes.fromhex(exchange["response"]))
    )
    return bool(sort_all(ours) == sort_all(kafkas))


def test_classic_groups_are_described_byte_for_byte() -> None:
    """A rebalance that is under way is in no record, and it alone is not compared."""
    seen: Counter[tuple[str, bool]] = Counter()
    for exchange, same in compare(load_exchanges(DESCRIBE_GROUPS), is_same_bytes):
        (group,) = exchange["responseJson"]["groups"]
        state = group["groupState"]
        if state in IN_A_REBALANCE:
            seen["in a rebalance", bool(group["members"])] += 1
            continue
        assert same, f"{group['groupId']} at {exchange['requestTs']}"
        seen[state, bool(group["members"])] += 1
    assert seen == {
        ("Stable", True): 92,
        ("Empty", False): 31,
        ("Dead", False): 32,
        ("in a rebalance", True): 31,
    }


def test_consumer_groups_are_described_as_kafka_described_them() -> None:
    """Also what a member has yet to give up is its assignment, and an empty pattern is no null."""
    seen: Counter[str] = Counter()
    exchanges = load_exchanges(CONSUMER_GROUP_DESCRIBE)
    for exchange, same in compare(exchanges, is_same_but_for_order):
        (group,) = exchange["responseJson"]["groups"]
        if group["errorCode"] in (LOADING, ELSEWHERE):
            continue
        assert same, f"{group['groupId']} at {exchange['requestTs']}"
        seen[group["groupState"] or group["errorMessage"].rpartition(group["groupId"])[2]] += 1
    assert seen == {
        "Stable": 76,
        "Reconciling": 30,
        "Assigning": 19,
        "Empty": 19,
        " is not a consumer group.": 52,
        " not found.": 24,
    }
