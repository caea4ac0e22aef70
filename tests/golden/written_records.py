"""What a server wrote of a group, beside what a real Kafka 4.3.0 wrote of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, NamedTuple

from model.ids import GroupId, compute_log_partition
from storage.codec.batches import BatchRecord
from storage.codec.to_json import compute_type_name, key_to_json, value_to_json
from tests.golden.kafka_log import PARTITIONS
from tests.golden.test_describe import sort_all
from tests.support.batches import decode_batches
from tests.support.memory import MemoryLogStore
from tests.support.storage.golden import logged_records

CLASSIC_GROUP = "GROUP_METADATA"
OFFSET = "OFFSET_COMMIT"


class Written(NamedTuple):
    """A record: its type, whether it is a tombstone, and its key and value as text."""

    type_name: str
    is_tombstone: bool
    shown: str


Conversion = tuple[tuple[str, bool, tuple[str, ...]], ...]
"""A batch in which a group changes its type: runs of records of one kind, in their order."""


def list_recorded(group_id: str) -> list[list[Written]]:
    """What Kafka wrote, batch by batch."""
    batches: dict[tuple[int, int], list[Written]] = defaultdict(list)
    for record in logged_records():
        if read_group(record["keyJson"]) == group_id:
            written = show(record["type"], record["keyJson"], record["valueJson"])
            batches[record["partition"], record["baseOffset"]].append(written)
    return list(batches.values())


def list_written(store: MemoryLogStore, group_id: str) -> list[list[Written]]:
    """What is in a store of our own, batch by batch."""
    partition = compute_log_partition(GroupId(group_id), PARTITIONS)
    batches = (
        [written for record in batch.records for written in decode_record(record, group_id)]
        for data in store.read_log(partition)
        for batch in decode_batches(data)
        if not batch.is_control
    )
    return [batch for batch in batches if batch]


def decode_record(record: BatchRecord, group_id: str) -> Iterator[Written]:
    """The record, if it is of the group."""
    assert record.key is not None
    type_id = int.from_bytes(record.key[:2], "big")
    key = key_to_json(record.key)
    if read_group(key) == group_id:
        value = None if record.value is None else value_to_json(type_id, record.value)
        yield show(compute_type_name(type_id), key, value)


def read_group(key: dict[str, Any]) -> Any:
    return key.get("group", key.get("groupId"))


def show(type_name: str, key: Any, value: Any) -> Written:
    return Written(type_name, value is None, repr((key, forget(value))))


def forget(value: Any) -> Any:
    """A value without its timestamps, and with what stands in a hash map in order.

    Who leads is chosen as the first of that map: that it is one of the members is all that is kept.
    """
    if value is None:
        return None
    kept = {name: each for name, each in value.items() if not name.endswith("imestamp")}
    if kept.get("leader") is not None:
        kept["leader"] = kept["leader"] in {member["memberId"] for member in kept["members"]}
    return sort_all(kept)


def replace_leaders_of_downgrades(batches: Iterable[list[Written]]) -> list[list[Written]]:
    """What Kafka wrote, but that nobody leads a group that was downgraded.

    Kafka names a member there, which was not told; here that is how a downgrade is known by its
    record. All else of the record stays as Kafka wrote it.
    """
    return [
        [_without_leader(record) if has_leader(record) else record for record in batch]
        if is_downgrade(batch)
        else batch
        for batch in batches
    ]


def is_downgrade(batch: list[Written]) -> bool:
    """Whether a consumer group becomes a classic group with members in it."""
    ends = any(each.type_name == "CONSUMER_GROUP_METADATA" and each.is_tombstone for each in batch)
    return ends and any(has_leader(record) for record in batch)


def has_leader(record: Written) -> bool:
    """Whether it is of a classic group, and names one of its members as the leader."""
    return record.type_name == CLASSIC_GROUP and "'leader': True" in record.shown


def _without_leader(record: Written) -> Written:
    return record._replace(shown=record.shown.replace("'leader': True", "'leader': None"))


def list_conversions(batches: Iterable[list[Written]]) -> list[Conversion]:
    """The batches that have records of both types of groups."""
    found = []
    for batch in batches:
        types = {record.type_name for record in batch} - {OFFSET}
        if CLASSIC_GROUP in types and len(types) > 1:
            runs = groupby(batch, lambda record: (record.type_name, record.is_tombstone))
            found.append(
                tuple((*kind, tuple(sorted(record.shown for record in run))) for kind, run in runs)
            )
    return found
