"""The matrix of rights: each API with each state of the group's and the topic's ACLs.

The principal is always the same, and the ACLs differ by the names of groups and topics. The names
are those of the states: ``g-read`` is a group that the principal may READ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from tests.differential.asks import (
    DELETE_GROUPS,
    DESCRIBE,
    DESCRIBE_GROUPS,
    FIND,
    LIST,
    Ask,
    beat,
    commit,
    delete_offsets,
    fetch,
    leave,
    txn_commit,
)

METADATA, JOIN, HEARTBEAT, SYNC, DESCRIBE_CONFIGS, ALTER_CONFIGS = 3, 11, 12, 14, 32, 44
DESCRIBE_ACLS, CREATE_ACLS, DELETE_ACLS = 29, 30, 31
TOPIC, GROUP, CLUSTER = 2, 3, 4
ANY, LITERAL, PREFIXED = 1, 3, 4
DENY, ALLOW = 2, 3
ALL, READ, DELETE, ALTER, DESCRIBES, DESCRIBES_CONFIGS, ALTERS_CONFIGS = 2, 3, 6, 7, 8, 10, 11
ME: Final = "User:ANONYMOUS"
HERE, ELSEWHERE = "127.0.0.1", "192.0.2.1"


class Rule(NamedTuple):
    operation: int
    permission: int = ALLOW
    principal: str = ME
    host: str = "*"
    pattern: int = LITERAL


STATES: Final[dict[str, tuple[Rule, ...]]] = {
    "free": (),
    "anothers": (Rule(ALL, principal="User:alice"),),
    "read": (Rule(READ),),
    "describe": (Rule(DESCRIBES),),
    "delete": (Rule(DELETE),),
    "alter": (Rule(ALTER),),
    "configs": (Rule(ALTERS_CONFIGS),),
    "all": (Rule(ALL),),
    "unread": (Rule(ALL), Rule(READ, DENY)),
    "unseen": (Rule(ALL), Rule(DESCRIBES, DENY)),
    "nothing": (Rule(ALL), Rule(ALL, DENY)),
    "everybody": (Rule(READ, principal="User:*"),),
    "nobody": (Rule(ALL), Rule(READ, DENY, principal="User:*")),
    "here": (Rule(READ, host=HERE),),
    "elsewhere": (Rule(READ, host=ELSEWHERE),),
    "family": (Rule(READ, pattern=PREFIXED),),
    "outcast": (Rule(ALL), Rule(READ, DENY, pattern=PREFIXED)),
}
"""The ACLs of a group or a topic of this name. A resource without ACLs is everybody's."""

GROUPS: Final = tuple(f"g-{state}" for state in STATES)
TOPICS: Final = tuple(f"t-{state}" for state in STATES)
FREE: Final = ("g-free", "t-free")
PAIRS: Final = (
    *((group, "t-free") for group in GROUPS),
    *(("g-free", topic) for topic in TOPICS[1:]),
    *((f"g-{state}", f"t-{state}") for state in list(STATES)[1:]),
)


def make_creations() -> list[dict[str, Any]]:
    """All the ACLs, as creations of CreateAcls."""
    return [
        {
            "resource_type": kind,
            # A prefix is shorter than the name that it stands for.
            "resource_name": name[:-1] if rule.pattern == PREFIXED else name,
            "resource_pattern_type": rule.pattern,
            "principal": rule.principal,
            "host": rule.host,
            "operation": rule.operation,
            "permission_type": rule.permission,
        }
        for kind, letter in ((GROUP, "g"), (TOPIC, "t"))
        for state, rules in STATES.items()
        for name in [f"{letter}-{state}"]
        for rule in rules
    ]


def make_filter(**fields: Any) -> dict[str, Any]:
    """A filter that means every ACL but for what ``fields`` say."""
    return {
        "resource_type_filter": ANY,
        "resource_name_filter": None,
        "pattern_type_filter": ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": ANY,
        "permission_type": ANY,
        **fields,
    }


def seeds() -> Iterator[Ask]:
    """Before there are ACLs: each group has an offset of each topic that is asked for."""
    for group, topic in PAIRS:
        yield commit(8, group, {0: 1}, topic)


# ------------------------------------------------------------------------------------- the APIs


def find_coordinator() -> Iterator[Ask]:
    for version in (0, 3, 4, 6):
        for group in GROUPS:
            keys = {"coordinator_keys": (group,)} if version >= 4 else {"key": group}
            yield Ask(FIND, version, keys | ({"key_type": 0} if version else {}))
    yield Ask(FIND, 4, {"coordinator_keys": GROUPS, "key_type": 0})


def classic_members() -> Iterator[Ask]:
    """The member is unknown: whoever may read the group is told so."""
    for group in GROUPS:
        who = {"group_id": group, "member_id": "x"}
        protocols = ({"name": "range", "metadata": b""},)
        joining = {"session_timeout": 10_000, "rebalance_timeout": 10_000, "protocols": protocols}
        yield Ask(JOIN, 5, {**who, **joining, "protocol_type": "consumer"})
        yield Ask(SYNC, 3, {**who, "generation_id": 1, "assignments": ()})
        yield Ask(HEARTBEAT, 3, {**who, "generation_id": 1})
        yield leave(3, group, ("x", None))
        yield leave(1, group, ("x", None))


def consumer_members() -> Iterator[Ask]:
    for group, topic in PAIRS:
        # An unknown member: refused before it is looked up, or after.
        yield beat(group, "x", 7)
        yield beat(group, "x", -1)
        yield beat(group, "x", 7, subscribed_topic_names=(topic,))
        yield beat(group, "x", 7, subscribed_topic_names=("t-free", topic))


def described_groups() -> Iterator[Ask]:
    for group in GROUPS:
        for key, field, version in (
            (DESCRIBE, "group_ids", 1),
            (DESCRIBE_GROUPS, "groups", 4),
            (DESCRIBE_GROUPS, "groups", 6),
        ):
            more = {"include_authorized_operations": True}
            yield Ask(key, version, {field: (group,), **more})
    yield Ask(DESCRIBE_GROUPS, 6, {"groups": GROUPS})


def commits() -> Iterator[Ask]:
    for version in (2, 8, 9, 10):
        for group, topic in PAIRS:
            yield commit(version, group, {0: 100 + version, 99: 1}, topic, member="", epoch=-1)
    for group, topic in PAIRS:
        yield commit(9, group, {0: 7}, topic, member="x", epoch=7)


def transactional_commits() -> Iterator[Ask]:
    for group, topic in PAIRS:
        yield txn_commit(3, group, {0: 50}, topic, member="x", epoch=7)


def fetches() -> Iterator[Ask]:
    for version in (1, 7, 8, 9, 10):
        for group, topic in PAIRS:
            yield fetch(version, group, (0, 1), topic)
    for group in GROUPS:
        yield fetch(7, group, None)
        yield fetch(9, group, None)
    yield fetch(9, "g-free", (0,), "no-such")


def deletions() -> Iterator[Ask]:
    """Those that are refused, and of what is not there; the rest would take it from the others."""
    for group, topic in PAIRS:
        yield delete_offsets(group, topic, 3)
    for group in ("g-read", "g-describe", "g-anothers", "g-nothing", "g-elsewhere", "no-such"):
        yield Ask(DELETE_GROUPS, 2, {"groups_names": (group,)})


def metadata() -> Iterator[Ask]:
    for version in (1, 8, 12):
        more = {"allow_auto_topic_creation": False} if version >= 4 else {}
        for topic in TOPICS:
            yield Ask(METADATA, version, {"topics": ({"name": topic},), **more})


def configs() -> Iterator[Ask]:
    for group in GROUPS:
        wanted = {"resource_type": 32, "resource_name": group}
        keys = ("consumer.session.timeout.ms",)
        yield Ask(DESCRIBE_CONFIGS, 4, {"resources": ({**wanted, "configuration_keys": keys},)})
        change = {"name": keys[0], "config_operation": 0, "value": "50000"}
        altered = {"resources": ({**wanted, "configs": (change,)},), "validate_only": True}
        yield Ask(ALTER_CONFIGS, 1, altered)


ROWS: Final[tuple[Callable[[], Iterator[Ask]], ...]] = (
    find_coordinator,
    classic_members,
    consumer_members,
    described_groups,
    commits,
    transactional_commits,
    fetches,
    deletions,
    metadata,
    configs,
)


def what_is_left() -> Iterator[Ask]:
    """After the ACLs are gone: what was refused has written nothing, as in Kafka."""
    for group in GROUPS:
        yield fetch(9, group, None)
    yield Ask(LIST, 4, {"states_filter": ()})
