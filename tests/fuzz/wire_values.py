"""Values for the fields of Kafka's requests, by their names: mostly ones that lead somewhere."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gateway.codec.kio_schema import FIXED, Field, compute_fields
from tests.fuzz.pool import PATTERNS, STRINGS, TOPICS, Pool
from tests.fuzz.records import ASSIGNMENTS, SUBSCRIPTIONS, make_batch

_WIDTHS = {"b": 1, "h": 2, "i": 4, "q": 8, "B": 1, "H": 2, "I": 4, "Q": 8}
_CONFIGS = (
    "cleanup.policy", "retention.ms", "retention.bytes", "consumer.session.timeout.ms",
    "consumer.heartbeat.interval.ms", "consumer.assignors", "offsets.retention.minutes",
    "consumer.migration.policy", "consumer.max.size", "x",
)  # fmt: skip
_VALUES = (
    None, "", "compact", "delete", "-1", "60000", "45000", "5000", "x", "range", "uniform",
    "disabled", "bidirectional", "9" * 400,
)  # fmt: skip


def _epoch(pool: Pool) -> int:
    return pool.mostly(pool.member.epoch, 0, -1, -2, 1, 2, 2**31 - 1, chance=0.8)


def _rebalance_timeout(pool: Pool) -> int:
    chosen = pool.pick(100, 300, 100, 300, 0, -1, -2, 2**31 - 1)
    pool.waits = pool.waits or chosen < 0 or chosen > 1_000
    return chosen


def _session_timeout(pool: Pool) -> int:
    """Members of classic groups are soon gone, so that nobody waits for them for long."""
    return pool.pick(300, 1_000, 1_000, 2_000, 0, -1, 2**31 - 1)


def _owned(pool: Pool, kind: Any) -> Any:
    """What the member was assigned, mostly; its names are those of the version's class."""
    held = pool.member.owned
    if pool.rng.random() < 0.15:
        held = {pool.topic_id(): pool.partitions()}
    rows = {row.name for row in compute_fields(kind)}
    if rows != {"topic_id", "partitions"}:
        return ()
    return tuple(kind(topic_id=topic, partitions=parts) for topic, parts in held.items())


_BY_NAME: dict[str, Callable[[Pool], Any]] = {
    "group_id": lambda pool: pool.mostly(pool.group_id, *STRINGS, chance=0.95),
    "member_id": lambda pool: pool.mostly(pool.member.member_id, "", *STRINGS, chance=0.9),
    "member_epoch": _epoch,
    "generation_id": _epoch,
    "generation_id_or_member_epoch": _epoch,
    "group_instance_id": lambda pool: pool.mostly(None, "i0", "i1", "", "z" * 1_025, chance=0.7),
    "instance_id": lambda pool: pool.mostly(None, "i0", "i1", "", chance=0.7),
    "rebalance_timeout": _rebalance_timeout,
    "session_timeout": _session_timeout,
    "protocol_type": lambda pool: pool.mostly("consumer", "connect", "", None),
    "protocol_name": lambda pool: pool.mostly("range", "roundrobin", None, ""),
    "topic": lambda pool: pool.pick(*TOPICS),
    "topic_name": lambda pool: pool.pick(*TOPICS),
    "topic_id": Pool.topic_id,
    "partition": lambda pool: pool.mostly(pool.rng.randrange(12), -1, 12, 2**31 - 1),
    "partition_index": lambda pool: pool.mostly(pool.rng.randrange(12), -1, 12, 2**31 - 1),
    "index": lambda pool: pool.mostly(pool.rng.randrange(3), -1, 12, 2**31 - 1),
    "subscribed_topic_regex": lambda pool: pool.mostly(None, *PATTERNS, chance=0.6),
    "server_assignor": lambda pool: pool.mostly(None, "uniform", "range", "nope", "", chance=0.7),
    "committed_offset": lambda pool: pool.mostly(pool.rng.randrange(100), -1, -2, 2**63 - 1),
    "committed_leader_epoch": lambda pool: pool.mostly(-1, 0, 5, 2**31 - 1, -(2**31)),
    "committed_metadata": lambda pool: pool.mostly("", None, "m", "x" * 5_000, *STRINGS),
    "retention_time": lambda pool: pool.mostly(-1, 0, 1, 2**63 - 1),
    "max_wait": lambda pool: pool.pick(0, 1, 100, -1),
    "min_bytes": lambda pool: pool.pick(0, 1, -1, 2**31 - 1),
    "timeout": lambda pool: pool.pick(0, 100, 1_000, -1),
    "num_partitions": lambda pool: pool.pick(1, 2, 5, -1, 0, 2**31 - 1, 100_001),
    "count": lambda pool: pool.pick(1, 5, 13, 60, 2**31 - 1, 0, -1),
    "replication_factor": lambda pool: pool.mostly(1, -1, 0, 2**15 - 1),
    "session_epoch": lambda pool: pool.mostly(-1, 0, 5, 2**31 - 1),
    "session_id": lambda pool: pool.mostly(0, 5, -1),
    "isolation_level": lambda pool: pool.pick(0, 1, 2),
    "resource_type": lambda pool: pool.mostly(pool.pick(2, 4, 32), 0, 1, 127),
    "resource_name": lambda pool: pool.pick("orders", pool.group_id, "1", "", "none", "a/b"),
    "config_operation": lambda pool: pool.mostly(pool.pick(0, 1), 2, 3, 9),
    "configuration_keys": lambda pool: pool.pick(*_CONFIGS),
    "value": lambda pool: pool.pick(*_VALUES),
    "key": lambda pool: pool.mostly(pool.group_id, *STRINGS),
    "key_type": lambda pool: pool.mostly(0, 1, 2, 127),
    "coordinator_keys": lambda pool: pool.mostly(pool.group_id, *STRINGS),
    "topic_names": lambda pool: pool.mostly(f"new-{pool.rng.randrange(4)}", *TOPICS),
    "subscribed_topic_names": lambda pool: pool.pick(*TOPICS[:5]),
    "states_filter": lambda pool: pool.pick("Stable", "Empty", "bogus", ""),
    "types_filter": lambda pool: pool.pick("consumer", "classic", "share", "bogus"),
    "metadata": lambda pool: pool.mostly(*SUBSCRIPTIONS, chance=0.5),
    "assignment": lambda pool: pool.mostly(*ASSIGNMENTS, chance=0.5),
    "transactional_id": lambda pool: pool.mostly(pool.pick(None, f"t-{pool.name}"), "", "x" * 300),
    "acks": lambda pool: pool.mostly(pool.pick(1, -1, 0), 2, -2),
    "transaction_version": lambda pool: pool.pick(0, 1, 2, 127),
}
_GROUPS = frozenset(("groups", "groups_names", "group_ids"))


def make_request(pool: Pool, kind: Any) -> Any:
    """An entity of the class of a request; the pool has chosen who speaks."""
    return _make_entity(pool, kind)


def _make_entity(pool: Pool, kind: Any) -> Any:
    rows = compute_fields(kind)
    values = {row.name: _make_value(pool, row, kind) for row in rows}
    if {"producer_id", "producer_epoch"} <= values.keys():
        known = pool.rng.choice(pool.producers or [(-1, -1)])
        values["producer_id"], values["producer_epoch"] = pool.mostly(
            known, (-1, -1), (1, 0), (2**63 - 1, 2**15 - 1), (known[0], known[1] - 1)
        )
    return kind(**values)


def _make_value(pool: Pool, row: Field, kind: Any) -> Any:
    rng = pool.rng
    if row.tag is not None and rng.random() < 0.5:
        return row.default
    if row.nullable and rng.random() < 0.1:
        return None
    if not row.is_array:
        return _make_one(pool, row, kind, is_element=False)
    if row.name == "topic_partitions" and rng.random() < 0.85:
        return _owned(pool, row.entity)
    if row.kafka_type == "int32":
        return pool.partitions()
    count = rng.choice((0, 1, 1, 1, 2, 3)) if rng.random() < 0.99 else 300
    return tuple(_make_one(pool, row, kind, is_element=True) for _ in range(count))


def _make_one(pool: Pool, row: Field, kind: Any, *, is_element: bool) -> Any:
    if row.entity is not None:
        return _make_entity(pool, row.entity)
    if row.kafka_type == "records":
        return make_batch(pool.rng, pool.producers)
    value = _make_plain(pool, row, kind)
    if value is None and (is_element or not row.nullable) and row.kafka_type != "uuid":
        return b"" if row.kafka_type == "bytes" else ""
    return value


def _make_plain(pool: Pool, row: Field, kind: Any) -> Any:
    if row.name in _GROUPS:
        return pool.mostly(pool.pick(*pool.groups), *STRINGS)
    if row.name == "name":
        return _make_name(pool, kind.__name__)
    letter = FIXED.get(row.kafka_type, "")
    if letter == "d":
        return pool.pick(5.0, 0.0, -1.0, 0.5, 1e300, math.inf, math.nan)
    if row.name in _BY_NAME:
        return _BY_NAME[row.name](pool)
    if letter == "?":
        return pool.pick(True, False)
    if letter in _WIDTHS:
        return pool.number(_WIDTHS[letter])
    if row.kafka_type == "bytes":
        return pool.pick(*SUBSCRIPTIONS, *ASSIGNMENTS)
    return pool.pick(*STRINGS) if row.kafka_type == "string" else None


def _make_name(pool: Pool, kind: str) -> str:
    """What is named depends on what it is in: a topic, a protocol, a setting."""
    if "Protocol" in kind:
        return pool.mostly(pool.pick("range", "roundrobin"), "cooperative-sticky", "", "x" * 300)
    if "Config" in kind:
        return pool.pick(*_CONFIGS)
    if kind.startswith(("CreatableTopic", "CreatePartitions", "DeleteTopic")):
        return pool.mostly(f"new-{pool.rng.randrange(4)}", *TOPICS)
    return pool.pick(*TOPICS)
