"""Requests under very many ACLs, and the lists and deletions of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coordinator.core.groups.acl_changes import ACLS_MAX
from coordinator.runtime.authorizer import AclAuthorizer
from gateway.settings import GatewaySettings
from model.access.acls import (
    ANY_HOST,
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
    Rule,
)
from model.caller import ANONYMOUS, INTERNAL
from model.commands.access import CreateAcls
from tests.cost.server import CostServer, cost_server
from tests.cost.test_apis import commit
from tests.cost.turns import ATOMIC_STEPS_MAX, TURN_STEPS_MAX, Counted
from tests.support.wire.fields import beat, join

METADATA, OFFSET_FETCH, LIST_GROUPS = 3, 9, 16
DESCRIBE_ACLS, CREATE_ACLS, DELETE_ACLS, HEARTBEAT = 29, 30, 31, 68
UNKNOWN_TOPIC_OR_PARTITION, TOPIC_AUTHORIZATION_FAILED = 3, 29
IN_A_COMMAND = 1_000
EVERYTHING: dict[str, Any] = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}
ANYBODY = "User:*"


def make_acls(count: int) -> list[Acl]:
    """Of groups, topics and prefixes of all lengths, each of another principal."""
    patterns = (
        ResourcePattern(ResourceType.GROUP, "g"),
        ResourcePattern(ResourceType.TOPIC, "t"),
        *(
            ResourcePattern(ResourceType.TOPIC, "t" * length, PatternType.PREFIXED)
            for length in range(1, 40)
        ),
    )
    return [
        Acl(
            patterns[number % len(patterns)],
            Rule(f"User:u{number}", ANY_HOST, Operation.READ, Permission.ALLOW),
        )
        for number in range(count)
    ]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[CostServer]:
    authorizer = AclAuthorizer(frozenset({ANONYMOUS}))
    with cost_server(tmp_path, authorizer=authorizer) as server:
        yield server


def fill(server: CostServer, count: int) -> None:
    acls = make_acls(count)
    for at in range(0, count, IN_A_COMMAND):
        server.call(CreateAcls(INTERNAL, tuple(acls[at : at + IN_A_COMMAND])))


def check(counted: Counted, steps_max: int) -> None:
    assert counted.longest <= steps_max, f"{counted.longest} steps in a turn of {counted.total}"


def test_as_many_acls_as_there_may_be_are_listed(server: CostServer) -> None:
    fill(server, ACLS_MAX)
    check(server.count(DESCRIBE_ACLS, 3, **EVERYTHING), ATOMIC_STEPS_MAX)


def test_as_many_acls_as_there_may_be_are_deleted(server: CostServer) -> None:
    fill(server, ACLS_MAX)
    counted = server.count(DELETE_ACLS, 3, filters=[EVERYTHING])
    check(counted, ATOMIC_STEPS_MAX)
    assert not server.ask(DESCRIBE_ACLS, 3, **EVERYTHING).resources


def test_a_request_may_create_as_many_as_fit_into_it(server: CostServer) -> None:
    rule = {"principal": ANYBODY, "host": "*", "operation": 3, "permission_type": 3}
    pattern = {"resource_type": 3, "resource_pattern_type": 3}
    creations = [{**pattern, **rule, "resource_name": f"g{number}"} for number in range(ACLS_MAX)]
    check(server.count(CREATE_ACLS, 3, creations=creations), ATOMIC_STEPS_MAX)


@pytest.mark.parametrize("count", [100, ACLS_MAX])
def test_acls_of_others_cost_a_member_nothing(tmp_path: Path, count: int) -> None:
    """The first heartbeat of each member is decided, not looked up."""
    with cost_server(tmp_path, authorizer=AclAuthorizer(frozenset())) as server:
        mine = [
            Acl(
                ResourcePattern(kind, name),
                Rule(ANONYMOUS, ANY_HOST, Operation.READ, Permission.ALLOW),
            )
            for kind, name in ((ResourceType.GROUP, "g"), (ResourceType.TOPIC, "t" * 40))
        ]
        server.call(CreateAcls(INTERNAL, tuple(mine)))
        fill(server, count - len(mine))
        server.create(1, "t" * 40)
        check(server.count(HEARTBEAT, 1, **join("g", "m", ("t" * 40,))), 20_000)


def test_a_change_of_acls_costs_each_member_one_look(server: CostServer) -> None:
    """Members of one connection, with a subscription of a thousand names."""
    names = tuple(f"t{number}" for number in range(1_000))
    server.create(1, *names)
    epochs = [
        server.ask(HEARTBEAT, 1, **join(f"g{number}", "m", names)).member_epoch
        for number in range(3)
    ]
    fill(server, IN_A_COMMAND)
    for number, epoch in enumerate(epochs):
        counted = server.count(HEARTBEAT, 1, **beat(f"g{number}", "m", epoch))
        check(counted, TURN_STEPS_MAX)
        # Of another version, so that it is decoded. A look costs some 20 steps a name.
        again = server.count(HEARTBEAT, 0, **beat(f"g{number}", "m", epoch))
        assert again.total < 3 * len(names), again.total


MANY = 20_000
"""Topics, or groups."""


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[CostServer]:
    """A server whose client may read the group ``g``, and see what begins with ``t1``."""
    with cost_server(
        tmp_path,
        authorizer=AclAuthorizer(frozenset()),
        gateway=GatewaySettings(auto_create_topics_enable=True),
    ) as server:
        prefixes = (ResourceType.GROUP, ResourceType.TOPIC)
        patterns = [ResourcePattern(kind, "t1", PatternType.PREFIXED) for kind in prefixes]
        rights = [(each, Operation.DESCRIBE) for each in patterns]
        rights += [
            (ResourcePattern(ResourceType.GROUP, "g"), Operation.READ),
            (ResourcePattern(ResourceType.TOPIC, "t1", PatternType.PREFIXED), Operation.READ),
        ]
        acls = (
            Acl(pattern, Rule(ANONYMOUS, ANY_HOST, operation, Permission.ALLOW))
            for pattern, operation in rights
        )
        server.call(CreateAcls(INTERNAL, tuple(acls)))
        yield server


def name_many() -> list[str]:
    return [f"t{number % 2}-{number}" for number in range(MANY)]


def test_what_may_be_seen_of_many_groups_is_found_in_short_turns(reader: CostServer) -> None:
    reader.create(1, "t0")
    reader.call_all(commit(name, "t0", (0,)) for name in name_many())
    counted = reader.count(LIST_GROUPS, 5)
    check(counted, TURN_STEPS_MAX)
    assert len(counted.kept[0][1].groups) == MANY // 2


def test_what_may_be_seen_of_many_topics_is_found_in_short_turns(reader: CostServer) -> None:
    reader.create(1, *name_many())
    counted = reader.count(METADATA, 12, topics=None)
    check(counted, TURN_STEPS_MAX)
    assert len(counted.kept[0][1].topics) == MANY // 2


def test_what_may_be_seen_of_many_offsets_is_found_in_short_turns(reader: CostServer) -> None:
    names = name_many()
    reader.create(1, *names)
    reader.call_all(commit("g", name, (0,)) for name in names)
    group = {"group_id": "g", "member_id": None, "member_epoch": -1, "topics": None}
    counted = reader.count(OFFSET_FETCH, 9, groups=[group], require_stable=False)
    check(counted, ATOMIC_STEPS_MAX)
    assert len(counted.kept[0][1].groups[0].topics) == MANY // 2


def test_which_of_many_topics_may_be_created_is_found_in_short_turns(reader: CostServer) -> None:
    topics = [{"topic_id": None, "name": name} for name in name_many()]
    counted = reader.count(METADATA, 12, topics=topics, allow_auto_topic_creation=True)
    check(counted, TURN_STEPS_MAX)
    codes = Counter(row.error_code for row in counted.kept[0][1].topics)
    assert codes == {TOPIC_AUTHORIZATION_FAILED: MANY // 2, UNKNOWN_TOPIC_OR_PARTITION: MANY // 2}
