"""Requests as plain values, which any side can be asked: (key, version, fields).

A topic is meant by `TopicId(name)`, which each side fills in; in answers it stands again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from tests.support.wire.connection import Connection

COMMIT, FETCH, FIND, LEAVE, DESCRIBE_GROUPS, LIST = 8, 9, 10, 13, 15, 16
MARKERS, TXN_COMMIT, DELETE_GROUPS, OFFSET_DELETE, BEAT, DESCRIBE = 27, 28, 42, 47, 68, 69
PARTITIONS: Final = 4
LEFT_OUT: Final = ("throttle_time", "error_message", "port", "cluster_id")

Rows = Mapping[int, object]
"""Partition to offset, or to (offset, metadata)."""


class Ask(NamedTuple):
    key: int
    version: int
    fields: dict[str, Any]


class TopicId(NamedTuple):
    name: str


def beat(group: str, member: str, epoch: int = 0, version: int = 1, **fields: Any) -> Ask:
    """A heartbeat; at epoch 0 a full one that joins with the topic t."""
    if epoch == 0:
        full = {
            "rebalance_timeout": 60_000,
            "subscribed_topic_names": ("t",),
            "topic_partitions": (),
        }
        fields = full | fields
    elif "topic_partitions" not in fields:
        fields["topic_partitions"] = None
    return Ask(
        BEAT,
        version,
        {"group_id": group, "member_id": member, "member_epoch": epoch, **fields},
    )


def owned(*partitions: int, topic: str = "t") -> tuple[dict[str, Any], ...]:
    return ({"topic_id": TopicId(topic), "partitions": partitions},)


def commit(version: int, group: str, rows: Rows, topic: str = "t", **fields: Any) -> Ask:
    """OffsetCommit of one topic; `member`, `epoch` and `instance` say who."""
    return Ask(COMMIT, version, compute_commit(version, group, rows, topic, fields))


def txn_commit(version: int, group: str, rows: Rows, topic: str = "t", **fields: Any) -> Ask:
    """TxnOffsetCommit of one topic; `member`, `epoch` and `instance` say who."""
    who = {"transactional_id": f"tx-{group}", "producer_id": 4_000, "producer_epoch": 0}
    names = {"epoch": "generation_id"}
    return Ask(TXN_COMMIT, version, who | compute_commit(0, group, rows, topic, fields, names))


def compute_commit(
    version: int,
    group: str,
    rows: Rows,
    topic: str,
    fields: Mapping[str, Any],
    names: Mapping[str, str] = {"epoch": "generation_id_or_member_epoch"},
) -> dict[str, Any]:
    all_names = {"member": "member_id", "instance": "group_instance_id", **names}
    by_id = version >= 10
    partitions = []
    for partition, row in rows.items():
        offset, metadata = row if isinstance(row, tuple) else (row, "")
        partitions.append(
            {
                "partition_index": partition,
                "committed_offset": offset,
                "committed_metadata": metadata,
            }
        )
    which = {"topic_id": TopicId(topic)} if by_id else {"name": topic}
    return {
        "group_id": group,
        "topics": [{**which, "partitions": partitions}],
        **{all_names.get(name, name): value for name, value in fields.items()},
    }


def fetch(
    version: int,
    group: str,
    partitions: Sequence[int] | None = range(PARTITIONS),
    topic: str = "t",
    stable: bool = False,
    **fields: Any,
) -> Ask:
    """OffsetFetch of one group; of all topics for None."""
    which: dict[str, Any] = {"topic_id": TopicId(topic)} if version >= 10 else {"name": topic}
    topics = None if partitions is None else [{**which, "partition_indexes": tuple(partitions)}]
    names = {"member": "member_id", "epoch": "member_epoch"}
    row = {
        "group_id": group,
        "topics": topics,
        **{names.get(name, name): value for name, value in fields.items()},
    }
    values = {"groups": [row]} if version >= 8 else row
    return Ask(FETCH, version, values | ({"require_stable": stable} if version >= 7 else {}))


def leave(version: int, group: str, *members: tuple[str, str | None]) -> Ask:
    """LeaveGroup of (member id, instance id)."""
    if version < 3:
        return Ask(LEAVE, version, {"group_id": group, "member_id": members[0][0]})
    rows = [{"member_id": member, "group_instance_id": instance} for member, instance in members]
    return Ask(LEAVE, version, {"group_id": group, "members": rows})


def delete_offsets(group: str, topic: str, *partitions: int) -> Ask:
    rows = [{"partition_index": partition} for partition in partitions]
    topics = [{"name": topic, "partitions": rows}]
    return Ask(OFFSET_DELETE, 0, {"group_id": group, "topics": topics})


class Answers:
    """What a side answers, as plain values that can be compared: lists are sorted."""

    def __init__(
        self,
        connection: Connection,
        topic_ids: Mapping[str, bytes],
        left_out: Sequence[str] = LEFT_OUT,
    ) -> None:
        self._connection = connection
        self._left_out = left_out
        self._ids = dict(topic_ids)
        self._names = {topic_id: name for name, topic_id in topic_ids.items()}

    async def ask(self, ask: Ask) -> Any:
        fields = {name: self._fill_in(value) for name, value in ask.fields.items()}
        return self._show(await self._connection.ask(ask.key, ask.version, **fields))

    def _fill_in(self, value: Any) -> Any:
        match value:
            case TopicId(name):
                return self._ids.get(name, name.encode().ljust(16, b"?"))
            case dict():
                return {name: self._fill_in(of) for name, of in value.items()}
            case list() | tuple():
                return tuple(self._fill_in(item) for item in value)
            case _:
                return value

    def _show(self, value: Any) -> Any:
        if dataclasses.is_dataclass(value):
            shown = {
                field.name: self._show(getattr(value, field.name))
                for field in dataclasses.fields(value)
                if field.name not in self._left_out
            }
            return {type(value).__name__: shown}
        match value:
            case tuple() | list():
                return sorted((self._show(item) for item in value), key=repr)
            case bytes():
                return self._names.get(value, value)
            case int():
                return int(value)
            case _:
                return value
