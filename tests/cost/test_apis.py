"""Each API of the Kafka wire with very many elements in each of its arrays, decoded to encoded.

What is asked for is derived from the schemas, so that an API or an array that is new is in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from coordinator.core.replay.group_records import replay
from gateway.api import Api
from gateway.apis.api_registry import APIS
from gateway.codec.kio_schema import compute_fields, request_type
from gateway.settings import GatewaySettings
from model.commands.classic import PROTOCOLS_MAX
from model.commands.offsets import COMMIT_PARTITIONS_MAX, OffsetCommit, TopicOffsets
from model.ids import GroupId, MemberId, TopicName
from model.log.commit_records import make_offset_columns
from model.log.records import ClassicGroupMember, GroupMetadataKey, GroupMetadataValue, Record
from storage.codec.batch_encoding import encode_batch
from tests.cost.server import AT_REST, CostServer, cost_server, topic_id_of
from tests.cost.test_core import ASSIGNMENT, SUBSCRIPTION
from tests.cost.turns import ATOMIC_STEPS_MAX, TURN_STEPS_MAX, Counted, check_law
from tests.support.virtual.server import CALLER

N: Final = 2_500
"""More than any slice has."""
ELEMENTS_MAX: Final = GatewaySettings().gateway_array_elements_max
SETTINGS: Final = replace(AT_REST, group_initial_rebalance_delay_ms=0)
BATCH: Final = encode_batch(0, [(b"k", b"v")], 1_700_000_000_000, leader_epoch=-1)
G: Final = "g"


class Place(NamedTuple):
    """An array of a request, by the names of the fields that lead to it."""

    api: Api
    path: tuple[str, ...]

    @property
    def label(self) -> str:
        return f"{self.api.name}.{'.'.join(self.path)}"


def find_arrays(entity: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for field in compute_fields(entity):
        if field.is_array:
            yield (*path, field.name)
        if field.entity is not None:
            yield from find_arrays(field.entity, (*path, field.name))


PLACES: Final = [
    Place(api, path)
    for api in APIS
    for path in find_arrays(request_type(api.key, api.versions[-1]))
]

# --------------------------------------------------------------------------- what is asked for

NUMBERED: Final = ("partition_index", "index", "partition", "producer_id")
"""Numbers of which each element has its own."""
SAID: Final[dict[str, dict[str, Any]]] = {
    "Produce": {"acks": -1, "records": BATCH},
    "Fetch": {"max_bytes": 1 << 20, "partition_max_bytes": 1 << 16},
    "ListOffsets": {"replica_id": -1, "timestamp": -1},
    "Metadata": {"allow_auto_topic_creation": False},
    "OffsetCommit": {"group_id": G, "member_id": ""},
    "OffsetFetch": {"member_id": None},
    "JoinGroup": {
        "group_id": G, "member_id": "", "session_timeout": 45_000, "rebalance_timeout": 60_000,
        "protocol_type": "consumer", "metadata": SUBSCRIPTION,
    },
    "LeaveGroup": {"group_id": G, "member_id": "t{}"},
    "SyncGroup": {
        "group_id": G, "member_id": "t{}", "protocol_type": "consumer", "protocol_name": "range",
        "generation_id": 5,
    },
    "CreateTopics": {"num_partitions": 1, "replication_factor": 1},
    "WriteTxnMarkers": {"name": "__consumer_offsets"},
    "TxnOffsetCommit": {"group_id": G, "member_id": "", "transactional_id": "x", "producer_id": 7},
    "DescribeConfigs": {"resource_type": 2},
    "CreatePartitions": {"count": 2},
    "IncrementalAlterConfigs": {"resource_type": 32, "value": "45000"},
    "AlterUserScramCredentials": {
        "name": "t{}", "mechanism": 1, "iterations": 4_096, "salt": b"salt",
        "salted_password": bytes(32),
    },
    "OffsetDelete": {"group_id": G},
    "DescribeClientQuotas": {"entity_type": "user", "match_type": 2},
    "AlterClientQuotas": {
        "entity_type": "user", "entity_name": "t{}", "key": "request_percentage", "value": 1.0,
    },
    "ConsumerGroupHeartbeat": {
        "group_id": G, "member_id": "m", "member_epoch": 0, "rebalance_timeout": 60_000,
        "subscribed_topic_names": ("t0",),
    },
    "DescribeTopicPartitions": {"response_partition_limit": 2_000},
}  # fmt: skip


SIZES: Final = {
    "CreatePartitions.topics.assignments": 10_000,
    "OffsetDelete.topics.partitions": 5_000,
}
"""Where more elements fit into a request that is decoded at once."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A request with ``count`` elements in the array at ``path``."""

    place: Place
    count: int

    def fields(self) -> dict[str, Any]:
        entity = request_type(self.place.api.key, self.place.api.versions[-1])
        return self._values(entity, self.place.path, 0)

    def _values(self, entity: Any, path: tuple[str, ...], number: int) -> dict[str, Any]:
        said = SAID.get(self.place.api.name, {})
        values = {}
        for field in compute_fields(entity):
            if field.is_array:
                if path[:1] == (field.name,) or field.name not in said:
                    values[field.name] = self._array(field, path)
                else:
                    values[field.name] = said[field.name]
            elif field.name in said:
                value = said[field.name]
                values[field.name] = value.format(number) if isinstance(value, str) else value
            elif field.name in NUMBERED:
                values[field.name] = number
            elif field.kafka_type == "uuid" and not field.tag:
                values[field.name] = topic_id_of(f"t{number}")
            elif field.kafka_type == "string" and field.tag is None and not field.nullable:
                values[field.name] = f"t{number}"
            else:
                values[field.name] = field.default
        return values

    def _array(self, field: Any, path: tuple[str, ...]) -> Any:
        is_it = path == (field.name,)
        if not is_it and path[:1] != (field.name,):
            if field.nullable:
                return None
            if field.name in ("assignments", "configs", "configuration_keys", "broker_ids"):
                return ()
            if field.name == "forgotten_topics_data":
                return ()
        numbers = range(self.count if is_it else 1)
        if field.entity is not None:
            inner = () if is_it else path[1:]
            return tuple(field.entity(**self._values(field.entity, inner, n)) for n in numbers)
        if field.kafka_type == "string":
            return tuple(f"t{number}" for number in numbers)
        if field.kafka_type == "int8":
            return tuple(number % 100 for number in numbers)
        return tuple(numbers)


# ------------------------------------------------------------------------------------- what is

TOPICS_AND_GROUPS = (
    "Metadata", "DeleteTopics", "CreatePartitions", "DescribeConfigs", "DescribeTopicPartitions",
    "OffsetFetch", "DescribeGroups", "DeleteGroups", "OffsetDelete", "ConsumerGroupHeartbeat",
    "TxnOffsetCommit", "OffsetCommit", "ListOffsets", "Fetch",
)  # fmt: skip
MEMBERS = ("LeaveGroup", "SyncGroup")


def make_members(server: CostServer, count: int) -> None:
    """A classic group in which each element is a member."""
    members = tuple(
        ClassicGroupMember(
            MemberId(f"t{number}"), None, "c", "/127.0.0.1", 60_000, 45_000, SUBSCRIPTION,
            ASSIGNMENT,
        )
        for number in range(count)
    )  # fmt: skip
    value = GroupMetadataValue("consumer", 5, "range", MemberId("t0"), 5, members)
    replay(server.runtime._shard_of(GroupId(G)), Record(GroupMetadataKey(GroupId(G)), value))


def commit(group: str, topic: str, partitions: Iterable[int]) -> OffsetCommit:
    rows = make_offset_columns((number, 1, -1, "") for number in partitions)
    topics = (TopicOffsets(TopicName(topic), None, rows),)
    return OffsetCommit(CALLER, GroupId(group), MemberId(""), None, topics)


def commit_in_parts(group: str, topic: str, partitions: int) -> Iterator[OffsetCommit]:
    for begin in range(0, partitions, COMMIT_PARTITIONS_MAX):
        yield commit(group, topic, range(begin, min(begin + COMMIT_PARTITIONS_MAX, partitions)))


def make_all(server: CostServer, place: Place, count: int) -> None:
    """Whatever is asked for is there."""
    if place.api.name in MEMBERS:
        make_members(server, count)
        return
    if len(place.path) > 1:
        server.create(count, "t0")
        for group in ("t0", G):
            server.call_all(commit_in_parts(group, "t0", count))
        return
    names = [f"t{number}" for number in range(count)]
    server.create(1, *names)
    if place.api.name in ("OffsetFetch", "DescribeGroups", "DeleteGroups"):
        server.call_all(commit(name, name, (0,)) for name in names)


def measure(place: Place, folder: Path, is_there: bool) -> Callable[[int], Counted]:
    runs = iter(range(100))

    def run(count: int) -> Counted:
        with cost_server(folder / str(next(runs)), settings=SETTINGS) as server:
            if is_there:
                make_all(server, place, count)
            version = place.api.versions[-1]
            counted = server.count(place.api.key, version, **Ask(place, count).fields())
            counted.kept = []
            return counted

    return run


ATOMIC: Final = {
    "OffsetCommit.topics": COMMIT_PARTITIONS_MAX,
    "OffsetCommit.topics.partitions": COMMIT_PARTITIONS_MAX,
    "TxnOffsetCommit.topics": COMMIT_PARTITIONS_MAX,
    "TxnOffsetCommit.topics.partitions": COMMIT_PARTITIONS_MAX,
    "JoinGroup.protocols": PROTOCOLS_MAX,
}
"""So many elements of what is one command are handled in one turn, and written in another: part of
a commit is none."""
LIMITS: Final = {
    **ATOMIC,
    # It shows what is there at one time: what of the store is to be read is said at once.
    "OffsetFetch.groups.topics": 10_000,
    "ConsumerGroupHeartbeat.subscribed_topic_names": SETTINGS.group_subscriptions_max,
    "CreateTopics.topics": 10_000,
}


def find_size(place: Place) -> int:
    limit = LIMITS.get(place.label, ELEMENTS_MAX)
    return SIZES.get(place.label, min(N, limit // 4))


def check_place(place: Place, run: Callable[[int], Counted]) -> None:
    limit = LIMITS.get(place.label, ELEMENTS_MAX)
    most = ATOMIC_STEPS_MAX if place.label in ATOMIC else TURN_STEPS_MAX
    check_law(run, find_size(place), limit, most)


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.label)
def test_a_request_of_what_is_not_there_is_linear_and_has_short_turns(
    place: Place, tmp_path: Path
) -> None:
    check_place(place, measure(place, tmp_path, is_there=False))


@pytest.mark.parametrize(
    "place",
    [place for place in PLACES if place.api.name in (*TOPICS_AND_GROUPS, *MEMBERS)],
    ids=lambda place: place.label,
)
def test_a_request_of_what_is_there_is_linear_and_has_short_turns(
    place: Place, tmp_path: Path
) -> None:
    check_place(place, measure(place, tmp_path, is_there=True))


def test_a_subscription_of_too_many_topics_is_refused_in_short_turns(tmp_path: Path) -> None:
    """Bug: all of it was read in the turn that it came in, 0.27 s for 100,000 topics."""
    label = "ConsumerGroupHeartbeat.subscribed_topic_names"
    place = next(place for place in PLACES if place.label == label)
    count = 4 * SETTINGS.group_subscriptions_max
    counted = measure(place, tmp_path, is_there=False)(count)
    assert counted.turns >= 10
    assert counted.longest <= TURN_STEPS_MAX // 4, counted


def test_what_a_member_says_it_owns_and_nobody_knows_is_read_in_short_turns(
    tmp_path: Path,
) -> None:
    runs = iter(range(100))

    def run(count: int) -> Counted:
        with cost_server(tmp_path / str(next(runs)), settings=SETTINGS) as server:
            server.create(1, "t0")
            said = {"group_id": G, "member_id": "m", "rebalance_timeout": 60_000}
            names = {"subscribed_topic_names": ("t0",)}
            joined = server.ask(68, 1, member_epoch=0, topic_partitions=(), **said, **names)
            topic = next(
                field for field in compute_fields(request_type(68, 1))
                if field.name == "topic_partitions"
            ).entity  # fmt: skip
            owned = tuple(
                topic(topic_id=topic_id_of(f"x{number}"), partitions=(0,))
                for number in range(count)
            )
            epoch = joined.member_epoch
            counted = server.count(68, 1, member_epoch=epoch, topic_partitions=owned, **said)
            assert not counted.kept[0][1].error_code
            counted.kept = []
            return counted

    check_law(run, N, ELEMENTS_MAX // 2)
