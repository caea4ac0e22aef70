"""The matrix of rights by who asks: principals that have logged in, their ACLs, and each API.

The groups and the topics are the same for all: one that literal ACLs name, one more of the family
that prefixed ACLs stand for, one outside. Nothing is allowed that no ACL allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, Final

from tests.differential.acl_rows import (
    ALL,
    ALLOW,
    ALTER_CONFIGS,
    CLUSTER,
    CREATE_ACLS,
    DELETE,
    DELETE_ACLS,
    DENY,
    DESCRIBE_ACLS,
    DESCRIBE_CONFIGS,
    DESCRIBES,
    GROUP,
    HEARTBEAT,
    JOIN,
    LITERAL,
    METADATA,
    PREFIXED,
    READ,
    SYNC,
    TOPIC,
    make_filter,
)
from tests.differential.asks import (
    DELETE_GROUPS,
    DESCRIBE,
    DESCRIBE_GROUPS,
    FIND,
    LIST,
    MARKERS,
    Ask,
    TopicId,
    beat,
    commit,
    delete_offsets,
    fetch,
    leave,
    txn_commit,
)
from tests.unit.gateway.topics.store_rig import a_batch

LIST_OFFSETS, CREATE_TOPICS, DELETE_TOPICS, INIT_PRODUCER, CREATE_PARTITIONS = 2, 19, 20, 22, 37
FETCH_RECORDS, DESCRIBE_QUOTAS, ALTER_QUOTAS, DESCRIBE_USERS, ALTER_USERS = 1, 48, 49, 50, 51
PRODUCE, DESCRIBE_CLUSTER, LIST_CONFIG_RESOURCES, DESCRIBE_PARTITIONS = 0, 60, 74, 75
WRITE, TRANSACTIONAL_ID = 4, 5

NAMED_GROUP, NAMED_TOPIC = "g-team", "t-orders"
GROUPS: Final = (NAMED_GROUP, "g-tools", "x-team")
TOPICS: Final = (NAMED_TOPIC, "t-other", "x-orders")
NEW_TOPICS: Final = ("t-new", "x-new")
"""Those that some would create."""
PAIRS: Final = tuple(product(GROUPS, TOPICS))

Acl = tuple[int, int, int, str, int]
"""Operation, permission, and the resource's type, name and pattern."""

_EVERYTHING: Final[tuple[Acl, ...]] = (
    (ALL, ALLOW, GROUP, "*", LITERAL),
    (ALL, ALLOW, TOPIC, "*", LITERAL),
    (ALL, ALLOW, TRANSACTIONAL_ID, "*", LITERAL),
    (ALL, ALLOW, CLUSTER, "kafka-cluster", LITERAL),
)
PRINCIPALS: Final[dict[str, tuple[Acl, ...]]] = {
    "stranger": (),
    "literal": (
        (ALL, ALLOW, GROUP, NAMED_GROUP, LITERAL),
        (ALL, ALLOW, TOPIC, NAMED_TOPIC, LITERAL),
    ),
    "prefix": ((ALL, ALLOW, GROUP, "g-", PREFIXED), (ALL, ALLOW, TOPIC, "t-", PREFIXED)),
    "reader": (
        (READ, ALLOW, GROUP, NAMED_GROUP, LITERAL),
        (READ, ALLOW, TOPIC, NAMED_TOPIC, LITERAL),
    ),
    "describer": (
        (DESCRIBES, ALLOW, GROUP, "g-", PREFIXED),
        (DESCRIBES, ALLOW, TOPIC, "t-", PREFIXED),
    ),
    "group-only": ((READ, ALLOW, GROUP, "*", LITERAL),),
    "topic-only": ((READ, ALLOW, TOPIC, "*", LITERAL),),
    "deleter": ((DELETE, ALLOW, GROUP, "g-", PREFIXED), (READ, ALLOW, TOPIC, "t-", PREFIXED)),
    "denied": (
        *_EVERYTHING,
        (READ, DENY, GROUP, NAMED_GROUP, LITERAL),
        (READ, DENY, TOPIC, NAMED_TOPIC, LITERAL),
        (DESCRIBES, DENY, GROUP, "x-", PREFIXED),
        (DESCRIBES, DENY, TOPIC, "x-", PREFIXED),
    ),
    "banned": (*_EVERYTHING, *((ALL, DENY, kind, name, p) for _, _, kind, name, p in _EVERYTHING)),
    "cluster": ((ALL, ALLOW, CLUSTER, "kafka-cluster", LITERAL),),
    # Of no topic that is there, and of none that is not denied.
    "writer": ((WRITE, ALLOW, TOPIC, "n-", PREFIXED), (WRITE, DENY, TOPIC, "n-some", PREFIXED)),
    "no-writer": ((WRITE, ALLOW, TOPIC, "n-some", PREFIXED), (WRITE, DENY, TOPIC, "n-", PREFIXED)),
    # A super user, whom no ACL can stop.
    "root": ((ALL, DENY, GROUP, "*", LITERAL), (ALL, DENY, TOPIC, "*", LITERAL)),
}
"""Whoever asks, and the ACLs about them."""
READS_ONLY: Final = ("stranger", "describer", "topic-only", "banned", "cluster", "no-writer")
"""Those who may not write to any group."""
SEES_ALL: Final = ("denied", "topic-only", "root")
"""Those who see the topics that only one side has."""


def make_creations() -> list[dict[str, Any]]:
    """All the ACLs, as creations of CreateAcls."""
    return [
        {
            "resource_type": kind,
            "resource_name": name,
            "resource_pattern_type": pattern,
            "principal": f"User:{user}",
            "host": "*",
            "operation": operation,
            "permission_type": permission,
        }
        for user, acls in PRINCIPALS.items()
        for operation, permission, kind, name, pattern in acls
    ]


def seeds() -> Iterator[Ask]:
    """Before anybody asks: each group has an offset of each topic."""
    for group, topic in PAIRS:
        yield commit(8, group, {0: 1}, topic)


# ------------------------------------------------------------------------------------- the APIs


def coordinators(_: str) -> Iterator[Ask]:
    for group in GROUPS:
        yield Ask(FIND, 3, {"key": group, "key_type": 0})
    yield Ask(FIND, 4, {"coordinator_keys": GROUPS, "key_type": 0})


def classic_members(_: str) -> Iterator[Ask]:
    """The member is unknown: whoever may read the group is told so."""
    for group in GROUPS:
        who = {"group_id": group, "member_id": "x"}
        protocols = ({"name": "range", "metadata": b""},)
        joining = {"session_timeout": 10_000, "rebalance_timeout": 10_000, "protocols": protocols}
        yield Ask(JOIN, 5, {**who, **joining, "protocol_type": "consumer"})
        yield Ask(SYNC, 3, {**who, "generation_id": 1, "assignments": ()})
        yield Ask(HEARTBEAT, 3, {**who, "generation_id": 1})
        yield leave(3, group, ("x", None))


def consumer_members(_: str) -> Iterator[Ask]:
    for group, topic in PAIRS:
        yield beat(group, "x", 7, subscribed_topic_names=(topic,))
    for group in GROUPS:
        yield beat(group, "x", 7)
        yield beat(group, "x", -1)


def described_groups(_: str) -> Iterator[Ask]:
    for key, field, version in ((DESCRIBE, "group_ids", 1), (DESCRIBE_GROUPS, "groups", 6)):
        for group in GROUPS:
            yield Ask(key, version, {field: (group,), "include_authorized_operations": True})
    yield Ask(LIST, 4, {"states_filter": ()})


def offsets(_: str) -> Iterator[Ask]:
    for version in (9, 10):
        for group, topic in PAIRS:
            yield commit(version, group, {0: 100 + version, 99: 1}, topic, member="", epoch=-1)
            yield fetch(version, group, (0, 1), topic)
    for group, topic in PAIRS:
        yield txn_commit(3, group, {0: 50}, topic, member="x", epoch=7)
    for group in GROUPS:
        yield fetch(9, group, None)


def deletions(_: str) -> Iterator[Ask]:
    """Of what is not there: to others it is to stay."""
    for group, topic in PAIRS:
        yield delete_offsets(group, topic, 3)
    for group in ("g-absent", "x-absent"):
        yield Ask(DELETE_GROUPS, 2, {"groups_names": (group,)})


def configs(_: str) -> Iterator[Ask]:
    keys = ("consumer.session.timeout.ms",)
    for group in GROUPS:
        wanted = {"resource_type": 32, "resource_name": group}
        yield Ask(DESCRIBE_CONFIGS, 4, {"resources": ({**wanted, "configuration_keys": keys},)})
        change = {"name": keys[0], "config_operation": 0, "value": "50000"}
        altered = {"resources": ({**wanted, "configs": (change,)},), "validate_only": True}
        yield Ask(ALTER_CONFIGS, 1, altered)
    yield Ask(LIST_CONFIG_RESOURCES, 1, {"resource_types": (32,)})


def topics(user: str) -> Iterator[Ask]:
    for topic in (*TOPICS, "x-absent"):
        yield Ask(METADATA, 12, {"topics": ({"name": topic},), "allow_auto_topic_creation": False})
        place = {"name": topic, "partitions": ({"partition_index": 0, "timestamp": -1},)}
        yield Ask(LIST_OFFSETS, 7, {"replica_id": -1, "isolation_level": 0, "topics": (place,)})
        yield Ask(DESCRIBE_PARTITIONS, 0, {"topics": ({"name": topic},), "cursor": None})
        grown = {"name": topic, "count": 9, "assignments": None}
        growth = {"topics": (grown,), "timeout": 30_000, "validate_only": True}
        yield Ask(CREATE_PARTITIONS, 3, growth)
    for topic in TOPICS:
        row = {"topic_id": TopicId(topic), "name": None}
        yield Ask(METADATA, 12, {"topics": (row,), "allow_auto_topic_creation": False})
        yield Ask(FETCH_RECORDS, 12, make_fetch(topic))
    for topic in NEW_TOPICS:
        new = {"name": topic, "num_partitions": 1, "replication_factor": 1}
        creation = {"topics": (new,), "timeout": 30_000, "validate_only": True}
        yield Ask(CREATE_TOPICS, 4, creation)
        gone = {"name": topic, "topic_id": bytes(16)}
        yield Ask(DELETE_TOPICS, 6, {"topics": (gone,), "timeout": 30_000})
    if user not in SEES_ALL:
        yield Ask(METADATA, 12, {"topics": None, "allow_auto_topic_creation": False})


def producers(_: str) -> Iterator[Ask]:
    for topic in (*TOPICS, "x-absent"):
        # To a partition that is not there: nothing is written where it is allowed.
        place = {"index": 99, "records": a_batch()}
        data = {"name": topic, "partition_data": (place,)}
        fields = {"transactional_id": None, "acks": -1, "timeout": 10_000, "topic_data": (data,)}
        yield Ask(PRODUCE, 9, fields)
        topics = {"topics": ({"name": topic},), "allow_auto_topic_creation": False}
        yield Ask(METADATA, 12, topics | {"include_topic_authorized_operations": True})
    yield Ask(INIT_PRODUCER, 2, {"transactional_id": None, "transaction_timeout": 10_000})
    yield Ask(DESCRIBE_CLUSTER, 1, {"include_cluster_authorized_operations": True})


def make_fetch(topic: str) -> dict[str, Any]:
    place = {
        "partition": 0,
        "current_leader_epoch": -1,
        "fetch_offset": 0,
        "last_fetched_epoch": -1,
        "log_start_offset": -1,
        "partition_max_bytes": 1_024,
    }
    return {
        "replica_id": -1,
        "max_wait": 0,
        "min_bytes": 0,
        "max_bytes": 1_024,
        "session_id": 0,
        "session_epoch": -1,
        "topics": ({"topic": topic, "partitions": (place,)},),
        "forgotten_topics_data": (),
    }


def cluster(_: str) -> Iterator[Ask]:
    """What changes nothing where it is allowed."""
    marker = {
        "producer_id": 9_000,
        "producer_epoch": 0,
        "transaction_result": False,
        "topics": (),
        "coordinator_epoch": 0,
    }
    yield Ask(MARKERS, 1, {"markers": (marker,)})
    nobody = make_filter(principal_filter="User:nobody-at-all")
    yield Ask(DESCRIBE_ACLS, 3, nobody)
    yield Ask(DELETE_ACLS, 3, {"filters": (nobody,)})
    yield Ask(CREATE_ACLS, 3, {"creations": ({**make_creations()[0], "resource_name": ""},)})
    yield Ask(DESCRIBE_USERS, 0, {"users": ({"name": "nobody-at-all"},)})
    removal = {"name": "nobody-at-all", "mechanism": 1}
    yield Ask(ALTER_USERS, 0, {"deletions": (removal,), "upsertions": ()})
    entity = {"entity_type": "user", "match_type": 0, "match": "nobody-at-all"}
    yield Ask(DESCRIBE_QUOTAS, 1, {"components": (entity,), "strict": True})
    named = {"entity_type": "user", "entity_name": "nobody-at-all"}
    limit = {"key": "consumer_byte_rate", "value": 1.0, "remove": False}
    change = {"entity": (named,), "ops": (limit,)}
    yield Ask(ALTER_QUOTAS, 1, {"entries": (change,), "validate_only": True})


ROWS: Final[tuple[Callable[[str], Iterator[Ask]], ...]] = (
    coordinators,
    classic_members,
    consumer_members,
    described_groups,
    offsets,
    deletions,
    configs,
    topics,
    producers,
    cluster,
)


def what_is_there() -> Iterator[Ask]:
    """As a super user sees it: what was refused has written nothing, as in Kafka."""
    for group in GROUPS:
        yield fetch(9, group, None)
    yield Ask(LIST, 4, {"states_filter": ()})
    yield Ask(DESCRIBE_ACLS, 3, make_filter())
    yield Ask(DESCRIBE_QUOTAS, 1, {"components": (), "strict": False})
    names = tuple({"name": name} for name in (*TOPICS, *NEW_TOPICS))
    yield Ask(METADATA, 12, {"topics": names, "allow_auto_topic_creation": False})
