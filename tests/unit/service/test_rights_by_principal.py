"""Each call by principals whose rights are of a literal name, of a prefix, and denied.

Each of them may do everything to some groups and topics, and nothing to the others.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import product
from typing import Any, Final

import grpc
import pytest

from coordinator.runtime.authorizer import AclAuthorizer
from model.access.acls import (
    ANY_HOST,
    CLUSTER_NAME,
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
    Rule,
)
from tests.support.service.logins import Logins
from tests.support.service.session_client import SessionClient, join
from tests.support.service.stand import Stand, running_stand
from tests.unit.service.test_rights_of_calls import CALLS, RIGHTS, Without, call, read_all

ROOT: Final = "root"
GROUP, TOPIC, CLUSTER = ResourceType.GROUP, ResourceType.TOPIC, ResourceType.CLUSTER
ALLOW, DENY = Permission.ALLOW, Permission.DENY
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
GROUPS: Final = ("team-a", "team-b", "x-team")
TOPICS: Final = ("team-orders", "team-other", "x-orders")
"""One that literal ACLs name, one more with its prefix, one outside."""
NAMES: Final = dict(zip(GROUPS, TOPICS, strict=True))

Row = tuple[Permission, ResourceType, str, PatternType]
RULES: Final[dict[str, tuple[Row, ...]]] = {
    "literal": (
        (ALLOW, GROUP, GROUPS[0], LITERAL),
        (ALLOW, TOPIC, TOPICS[0], LITERAL),
        (ALLOW, CLUSTER, CLUSTER_NAME, LITERAL),
    ),
    "prefix": ((ALLOW, GROUP, "team-", PREFIXED), (ALLOW, TOPIC, "team-", PREFIXED)),
    "denied": (
        (ALLOW, GROUP, "*", LITERAL),
        (ALLOW, TOPIC, "*", LITERAL),
        (ALLOW, CLUSTER, CLUSTER_NAME, LITERAL),
        (DENY, GROUP, GROUPS[0], LITERAL),
        (DENY, TOPIC, TOPICS[0], LITERAL),
        (DENY, GROUP, "x-", PREFIXED),
        (DENY, TOPIC, "x-", PREFIXED),
        (DENY, CLUSTER, CLUSTER_NAME, LITERAL),
    ),
}
OPEN: Final = {
    "literal": {*GROUPS[:1], *TOPICS[:1], CLUSTER_NAME},
    "prefix": {*GROUPS[:2], *TOPICS[:2]},
    "denied": {GROUPS[1], TOPICS[1]},
}
"""What each may do everything to; the cluster of the first stands for all groups in lists."""
OF_THE_CLUSTER: Final = ("AdminService.CreateTopic", "AdminService.DeleteTopic")
"""Calls for which a right on the cluster does as well as one on the topic."""
WRITES_NOTHING: Final = {
    name: {"validate_only": True}
    for name in ("AdminService.DeleteTopic", "AccessService.DeleteAcls")
}
"""What would take away what others are asked about."""


@pytest.fixture
async def stand() -> AsyncIterator[Stand]:
    authorizer, logins = AclAuthorizer(frozenset({f"User:{ROOT}"})), Logins()
    for user, rows in RULES.items():
        for permission, kind, name, pattern in rows:
            rule = Rule(f"User:{user}", ANY_HOST, Operation.ALL, permission)
            authorizer.acls.add(Acl(ResourcePattern(kind, name, pattern), rule))
    made = logins.make()
    async with running_stand(authorizer=authorizer, authenticate=made.authenticate) as running:
        for topic in TOPICS:
            await running.create_topic(topic, 1)
        yield running
    logins.stop()


def log_in(user: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {user}.never"),)


def rename(value: Any, names: dict[str, str]) -> Any:
    """The fields of a call of ``RIGHTS``, about another group and topic."""
    match value:
        case dict():
            return {key: rename(of, names) for key, of in value.items()}
        case list():
            return [rename(of, names) for of in value]
        case str():
            return names.get(value, value)
        case _:
            return value


def is_refused(without: Without, status: grpc.StatusCode | None, answer: Any) -> bool:
    if without is Without.IS_UNKNOWN:
        return status is grpc.StatusCode.NOT_FOUND
    return status is grpc.StatusCode.PERMISSION_DENIED or "AUTHORIZATION_FAILED" in str(answer)


@pytest.mark.parametrize("user", RULES)
@pytest.mark.parametrize("name", CALLS)
async def test_a_call_does_what_its_principal_may(stand: Stand, name: str, user: str) -> None:
    right = RIGHTS[name]
    if right.without is Without.LEAVES_OUT:
        return
    for group, topic in NAMES.items():
        renamed = rename(right.fields, {"g": group, "orders": topic, "new": topic})
        fields = renamed | WRITES_NOTHING.get(name, {})
        resource = {GROUP: group, TOPIC: topic, CLUSTER: CLUSTER_NAME}[right.resource_type]
        is_open = resource in OPEN[user] or (name in OF_THE_CLUSTER and topic in OPEN[user])
        written = read_all(stand)
        status, answer = await call(stand, name, fields, log_in(user))
        assert is_refused(right.without, status, answer) == (not is_open), (group, answer)
        if not is_open:
            assert read_all(stand) == written, "nothing was written"


def pair(group: str, topic: str) -> dict[str, dict[str, Any]]:
    """The calls that are about topics of a group."""
    places = [{"topic_name": topic, "partitions": [0]}]
    offsets = [{"topic_name": topic, "partitions": [{"partition": 0, "offset": 1}]}]
    heartbeat = {"group_id": group, "member_id": "m", "rebalance_timeout_ms": 60_000}
    heartbeat |= {"subscription": {"subscribed_topic_names": [topic]}, "owned": {}}
    return {
        "GroupService.CommitOffsets": {"group_id": group, "topics": offsets},
        "GroupService.FetchOffsets": {"group_id": group, "partitions": {"topics": places}},
        "AdminService.DeleteOffsets": {"group_id": group, "topics": places},
        "GroupService.Heartbeat": heartbeat,
    }


@pytest.mark.parametrize("user", RULES)
async def test_a_group_needs_its_topics_too(stand: Stand, user: str) -> None:
    for group, topic in product(GROUPS, TOPICS):
        is_open = {group, topic} <= OPEN[user]
        for name, fields in pair(group, topic).items():
            written = read_all(stand)
            status, answer = await call(stand, name, fields, log_in(user))
            refused = is_refused(RIGHTS[name].without, status, answer)
            assert refused == (not is_open), (name, group, topic, answer)
            if not is_open:
                assert read_all(stand) == written, "nothing was written"


@pytest.mark.parametrize("user", RULES)
async def test_lists_show_what_their_principal_may_see(stand: Stand, user: str) -> None:
    for group in GROUPS:
        commit = pair(group, TOPICS[0])["GroupService.CommitOffsets"]
        await call(stand, "GroupService.CommitOffsets", commit, log_in(ROOT))
    _, groups = await call(stand, "AdminService.ListGroups", {}, log_in(user))
    _, topics = await call(stand, "AdminService.ListTopics", {}, log_in(user))
    sees_all = CLUSTER_NAME in OPEN[user]
    seen = set(GROUPS) if sees_all else OPEN[user] & set(GROUPS)
    assert {row.group_id for row in groups.groups} == seen
    assert {row.topic_name for row in topics.topics} - {"orders"} == OPEN[user] & set(TOPICS)


@pytest.mark.parametrize("user", RULES)
async def test_a_session_takes_the_members_that_its_principal_may_have(
    stand: Stand, user: str
) -> None:
    client = SessionClient(stand.group_stub(), metadata=log_in(user))
    for number, (group, topic) in enumerate(product(GROUPS, TOPICS)):
        written = read_all(stand)
        await client.send(join(f"m{number}", group_id=group, topics=(topic,)))
        update = await client.next_update()
        if {group, topic} <= OPEN[user]:
            assert update.WhichOneof("update") == "assignment", update
        else:
            assert "AUTHORIZATION_FAILED" in str(update)
            assert read_all(stand) == written, "nothing was written"
