"""A classic group loads from its record as in Kafka."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from coordinator.core.groups.group_description import describe_classic_group
from coordinator.core.replay.group_records import replay
from coordinator.core.state.classic.classic_group import ClassicGroupState, compute_classic_group
from coordinator.core.state.classic.embedded_protocol import (
    decode_assigned_partitions,
    decode_subscribed_topics,
)
from coordinator.core.state.shard import Shard
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, LogPartition, MemberId
from model.log.records import ClassicGroupMember, GroupMetadataKey, GroupMetadataValue, Record
from model.topics import TopicImage
from muster.assignors.embedded import TopicPartitions
from tests.groups import TESTS

G = GroupId("g")
SUBSCRIPTION = bytes.fromhex("0000000000010001" + b"t".hex() + "ffffffff")


def make_member(name: str, subscription: bytes = SUBSCRIPTION, **fields: Any) -> ClassicGroupMember:
    values = {"rebalance_timeout": 60_000, "session_timeout": 10_000, **fields}
    return ClassicGroupMember(
        MemberId(name),
        None,
        "c",
        "/127.0.0.1",
        subscription=subscription,
        assignment=b"a",
        **values,
    )


def make_value(*members: ClassicGroupMember, **fields: Any) -> GroupMetadataValue:
    values = {
        "protocol_type": "consumer",
        "generation": 3,
        "protocol": "range",
        "leader": MemberId("b"),
        "current_state_timestamp": 5,
        **fields,
    }
    return GroupMetadataValue(members=members, **values)


def test_members_make_it_stable() -> None:
    group = compute_classic_group(G, make_value(make_member("a"), make_member("b")))
    assert group.state is ClassicGroupState.STABLE
    assert list(group.members) == ["a", "b"]
    assert (group.generation, group.protocol_name, group.leader) == (3, "range", "b")
    assert group.subscribed_topics == {"t"}
    assert group.current_state_timestamp_ms == 5


def test_without_members_it_is_empty() -> None:
    group = compute_classic_group(G, make_value(protocol=None, leader=None))
    assert group.state is ClassicGroupState.EMPTY
    assert (group.protocol_name, group.leader, group.members) == (None, None, {})
    assert group.subscribed_topics == frozenset()


def test_what_old_records_do_not_say() -> None:
    """Trigger: records of versions 0 and 1; no leader, so that Kafka takes the first member."""
    member = make_member("a", rebalance_timeout=-1)
    group = compute_classic_group(G, make_value(member, leader=None, current_state_timestamp=-1))
    assert group.members[MemberId("a")].rebalance_timeout_ms == 10_000
    assert group.leader == "a"
    assert group.current_state_timestamp_ms is None
    assert compute_classic_group(G, make_value(protocol_type="")).protocol_type is None


@pytest.mark.parametrize(
    ("subscription", "fields"),
    [
        (b"", {}),
        (b"\x00", {}),
        (SUBSCRIPTION[:-1], {}),
        (SUBSCRIPTION[:6], {}),
        (b"\xff\xff" + SUBSCRIPTION[2:], {}),
        (bytes.fromhex("0000 7fffffff 0001 74 ffffffff"), {}),
        (bytes.fromhex("0000 00000001 0001 ff ffffffff"), {}),
        (SUBSCRIPTION, {"protocol_type": "connect"}),
        (SUBSCRIPTION, {"protocol": None}),
    ],
)
def test_subscriptions_that_cannot_be_known(subscription: bytes, fields: dict[str, Any]) -> None:
    """Kafka then expires no offsets of the group: it cannot tell which are still wanted."""
    members = (make_member("a"), make_member("b", subscription))
    assert compute_classic_group(G, make_value(*members, **fields)).subscribed_topics is None


def test_a_group_that_is_not_stable_shows_no_protocol() -> None:
    """Trigger: the last record of an Empty group still names a protocol."""
    shard = Shard(LogPartition(0), CoordinatorSettings(), TopicImage())
    replay(shard, Record(GroupMetadataKey(G), make_value()))
    described = describe_classic_group(shard, G)
    assert (described.state, described.protocol, described.protocol_type) == (
        "Empty",
        "",
        "consumer",
    )
    replay(shard, Record(GroupMetadataKey(G), None))
    assert describe_classic_group(shard, G).state == "Dead"


def embedded(message: str) -> list[dict[str, Any]]:
    """What Kafka's own classes serialized, in all versions."""
    path = TESTS / "golden" / "vectors" / "embedded_protocol.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [row for row in map(json.loads, lines) if row["message"] == message]
    assert len({row["version"] for row in rows}) == 4
    return rows


def test_golden_subscriptions() -> None:
    for row in embedded("ConsumerProtocolSubscription"):
        data = bytes.fromhex(row["bytesWithVersionPrefix"])
        assert decode_subscribed_topics(data) == tuple(row["json"]["topics"])


def test_golden_assignments() -> None:
    for row in embedded("ConsumerProtocolAssignment"):
        data = bytes.fromhex(row["bytesWithVersionPrefix"])
        expected = tuple(
            TopicPartitions(topic["topic"], tuple(topic["partitions"]))
            for topic in row["json"]["assignedPartitions"]
        )
        assert decode_assigned_partitions(data) == expected
        for end in range(min(len(data), 60)):
            cut = decode_assigned_partitions(data[:end])
            assert cut is None or cut == expected[: len(cut)]
