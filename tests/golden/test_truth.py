"""A server that loads the log of a real Kafka 4.3.0 shows what that broker showed after a restart.

All through the Kafka wire: lists, descriptions, committed offsets with and without require-stable.
"""

from __future__ import annotations

from typing import Any

import pytest

from gateway.codec.kio_schema import request_schema
from tests.golden.kafka_log import PARTITIONS, final_state, load_store
from tests.golden.test_describe import sort_all
from tests.support.gateway.entity_json import entity_to_json
from tests.support.gateway.wire_door import Gateway
from tests.support.virtual.server import VirtualServer

DESCRIBE_GROUPS, LIST_GROUPS, OFFSET_FETCH, CONSUMER_GROUP_DESCRIBE = 15, 16, 9, 69
GROUPS = {"classic": 27, "consumer": 17, "share": 1, "streams": 1}


class Wire:
    """Asks the server over a connection without a socket."""

    def __init__(self) -> None:
        self.server = VirtualServer(store=load_store(), partitions=PARTITIONS)
        self._door = Gateway(coordinator=self.server.runtime).connect()

    def ask(self, key: int, version: int, **fields: Any) -> dict[str, Any]:
        self._door.request(key, version, 1, **fields)
        self.server.settle()
        ((_, answer),) = self._door.answers(key, version)
        return entity_to_json(answer)

    def list_groups(self, version: int = 5, **filters: Any) -> dict[str, dict[str, Any]]:
        answer = self.ask(LIST_GROUPS, version, **filters)
        return {group["groupId"]: group for group in answer["groups"]}

    def fetch(self, group_id: str, *, require_stable: bool) -> dict[str, Any]:
        """All offsets of a group."""
        wire = request_schema(OFFSET_FETCH, 9)
        asked = wire.OffsetFetchRequestGroup(group_id=group_id, topics=None)
        answer = self.ask(OFFSET_FETCH, 9, groups=(asked,), require_stable=require_stable)
        (group,) = answer["groups"]
        return dict(group)


@pytest.fixture(scope="module")
def wire() -> Wire:
    return Wire()


def groups_of(*types: str) -> list[dict[str, Any]]:
    return [group for group in final_state()["groups"] if group["listed"]["type"] in types]


def test_the_list_is_kafkas(wire: Wire) -> None:
    kafkas = {group["groupId"]: group["listed"] for group in final_state()["groups"]}
    ours = wire.list_groups()
    assert {
        name: {
            "protocolType": group["protocolType"],
            "state": group["groupState"],
            "type": group["groupType"],
        }
        for name, group in ours.items()
    } == kafkas
    for version in range(5):
        assert wire.list_groups(version).keys() == kafkas.keys()
    for group_type, count in GROUPS.items():
        found = wire.list_groups(types_filter=(group_type.upper(),))
        assert {group["groupType"] for group in found.values()} == {group_type}
        assert len(found) == count
    assert wire.list_groups(states_filter=(" EMPTY ",)).keys() == kafkas.keys()
    assert wire.list_groups(states_filter=("Stable",), types_filter=("share",)) == {}


def test_classic_groups_are_described_as_kafka_does(wire: Wire) -> None:
    for group in groups_of("classic"):
        answer = wire.ask(DESCRIBE_GROUPS, 6, groups=(group["groupId"],))
        assert answer["groups"] == [group["describeGroups.v6"]]


def test_consumer_groups_are_described_as_kafka_does(wire: Wire) -> None:
    for group in groups_of("consumer"):
        asked = (group["groupId"],)
        (described,) = wire.ask(CONSUMER_GROUP_DESCRIBE, 1, group_ids=asked)["groups"]
        assert sort_all(described) == sort_all(group["consumerGroupDescribe.v1"])
        assert wire.ask(DESCRIBE_GROUPS, 6, groups=asked)["groups"] == [group["describeGroups.v6"]]


def test_groups_that_are_not_served_are_described_as_of_another_type(wire: Wire) -> None:
    """Kafka answers these requests alike for every group that is not what was asked for."""
    for group in groups_of("share", "streams"):
        name = group["groupId"]
        (classic,) = wire.ask(DESCRIBE_GROUPS, 6, groups=(name,))["groups"]
        assert (classic["errorCode"], classic["groupState"]) == (69, "Dead")
        assert classic["errorMessage"] == f"Group {name} is not a classic group."
        (consumer,) = wire.ask(CONSUMER_GROUP_DESCRIBE, 1, group_ids=(name,))["groups"]
        assert consumer["errorCode"] == 69
        assert consumer["errorMessage"] == f"Group {name} is not a consumer group."
        (old,) = wire.ask(DESCRIBE_GROUPS, 5, groups=(name,))["groups"]
        assert (old["errorCode"], old["groupState"]) == (0, "Dead")


@pytest.mark.parametrize("require_stable", [False, True])
def test_committed_offsets_are_kafkas(wire: Wire, require_stable: bool) -> None:
    name = "offsetFetch.v9.requireStable" if require_stable else "offsetFetch.v9"
    offsets = 0
    for group in final_state()["groups"]:
        fetched = wire.fetch(group["groupId"], require_stable=require_stable)
        wanted = {key: value for key, value in fetched.items() if key in group[name]}
        assert sort_all(wanted) == sort_all(group[name])
        offsets += sum(len(topic["partitions"]) for topic in group[name]["topics"])
    assert offsets > 100
