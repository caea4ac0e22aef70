"""Share and streams groups: state from records in any order and compaction."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import permutations

import pytest

from coordinator.core.groups.group_description import list_groups
from coordinator.core.replay.group_records import replay
from coordinator.core.state.shard import Shard
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, LogPartition
from model.log import share_records as share
from model.log import streams_records as streams
from model.log.records import Record, RecordKey, RecordType, UnknownKey, UnknownValue
from model.topics import TopicImage
from storage.codec.foreign_schemas import FOREIGN_SCHEMAS
from tests.support.imported_groups import make_imported
from tests.support.shadow import Shadow, describe_shadow, describe_shards

STREAMS = {"epoch": "3", "target": "3", "members": "a@3,b@3"}
SHARE = {"epoch": "3", "members": "a,b"}


def make_shard(records: Iterable[Record]) -> Shard:
    shard = Shard(LogPartition(0), CoordinatorSettings(), TopicImage())
    for record in records:
        replay(shard, record)
    return shard


def states(shard: Shard) -> dict[str, str]:
    return {group.group_id: group.state for group in list_groups(shard)}


def test_any_order_gives_the_same_group() -> None:
    records = make_imported("streams", "t", {**STREAMS, "members": "a@3"})
    described = {str(describe_shards([make_shard(order)])) for order in permutations(records)}
    assert len(described) == 1
    assert states(make_shard(records)) == {"t": "Stable"}


@pytest.mark.parametrize(("kind", "options"), [("share", SHARE), ("streams", STREAMS)])
def test_tombstones_take_everything_away(kind: str, options: dict[str, str]) -> None:
    records = make_imported(kind, "g", options)
    tombstones = [Record(key, None) for key, _ in reversed(records)]
    assert states(make_shard([*records, *tombstones])) == {}
    assert states(make_shard(tombstones)) == {}, "of what was compacted away"
    shadow = Shadow()
    for record in [*records, *tombstones]:
        shadow.apply(record)
    assert describe_shadow(shadow) == describe_shards([make_shard([*records, *tombstones])])


@pytest.mark.parametrize(("kind", "options"), [("share", SHARE), ("streams", STREAMS)])
def test_a_group_that_lost_its_members_is_empty(kind: str, options: dict[str, str]) -> None:
    records = make_imported(kind, "g", options)
    members = (share.ShareGroupMemberMetadataKey, streams.StreamsGroupMemberMetadataKey)
    left = [Record(key, None) for key, _ in records if isinstance(key, members)]
    assert states(make_shard([*records, *left[:1]]))["g"] != "Empty"
    assert states(make_shard([*records, *left])) == {"g": "Empty"}


def test_a_tombstone_of_one_type_leaves_the_other_alone() -> None:
    shard = make_shard(make_imported("share", "g", SHARE))
    replay(shard, Record(streams.StreamsGroupMetadataKey(GroupId("g")), None))
    replay(shard, Record(streams.StreamsGroupTopologyKey(GroupId("g")), None))
    assert states(shard) == {"g": "Stable"}


def test_every_type_is_replayed_and_values_of_newer_versions_are_skipped() -> None:
    shard = make_shard([])
    newer = UnknownValue(b"\x00\x09what a newer Kafka wrote")
    kinds = [schema.key.cls for schema in FOREIGN_SCHEMAS.values()]
    assert len(kinds) == 12
    for kind in kinds:
        key: RecordKey = kind(*["g"] * len(kind.__slots__))
        replay(shard, Record(key, newer))
        replay(shard, Record(key, None))
    assert describe_shards([shard]) == describe_shards([make_shard([])])


@pytest.mark.parametrize("type_id", [9, 18, max(RecordType) + 1, 99, -1])
def test_unknown_types_are_skipped(type_id: int) -> None:
    assert type_id not in {*RecordType}
    key = UnknownKey(type_id, type_id.to_bytes(2, "big", signed=True) + b"g")
    shard = make_shard([Record(key, UnknownValue(b"\x00\x00v")), Record(key, None)])
    assert states(shard) == {}
