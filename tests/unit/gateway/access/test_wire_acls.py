"""ACLs over the wire, and what they do to requests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from coordinator.runtime.authorizer import AclAuthorizer
from gateway.codec.kio_schema import request_schema
from model.access.acls import (
    Acl,
    Operation,
    Permission,
    ResourcePattern,
    ResourceType,
    Rule,
)
from model.caller import INTERNAL
from model.commands.access import CreateAcls, DeleteAcls
from model.errors import ErrorCode
from tests.support.gateway.wire_rig import Rig, run_rig
from tests.support.gateway.wire_steps import (
    COMMIT,
    HEARTBEAT,
    UNPARKED,
    commit_codes,
    commit_topics,
)
from tests.support.wire.connection import Connection
from tests.support.wire.fields import beat, join

DESCRIBE, CREATE, DELETE = 29, 30, 31
ANY, MATCH, LITERAL, PREFIXED = 1, 2, 3, 4
TOPIC, GROUP, CLUSTER = 2, 3, 4
ALL, READ, ALTER, DESCRIBE_OPERATION = 2, 3, 7, 8
DENY, ALLOW = 2, 3
ANONYMOUS = "User:ANONYMOUS"
NONE = (ErrorCode.NONE, None)


@asynccontextmanager
async def run_guarded(*super_users: str) -> AsyncIterator[tuple[Rig, AclAuthorizer]]:
    """A server whose ACLs decide; by default nobody may do anything without one."""
    authorizer = AclAuthorizer(frozenset(super_users))
    async with run_rig(UNPARKED, authorizer=authorizer) as rig:
        yield rig, authorizer


def creation(name: str = "g", **fields: Any) -> Any:
    defaults = {
        "resource_type": GROUP,
        "resource_name": name,
        "resource_pattern_type": LITERAL,
        "principal": ANONYMOUS,
        "host": "*",
        "operation": READ,
        "permission_type": ALLOW,
    }
    return request_schema(CREATE).AclCreation(**{**defaults, **fields})


def make_filter(**fields: Any) -> dict[str, Any]:
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


async def create(client: Connection, *creations: Any, version: int = 3) -> list[Any]:
    """(code, message) of each creation."""
    answer = await client.ask(CREATE, version, creations=creations)
    return [(row.error_code, row.error_message) for row in answer.results]


async def delete(client: Connection, *filters: dict[str, Any], version: int = 3) -> list[Any]:
    """The error, or the names of the deleted ACLs' resources, for each filter."""
    make = request_schema(DELETE, version).DeleteAclsFilter
    answer = await client.ask(DELETE, version, filters=[make(**each) for each in filters])
    return [
        row.error_code or sorted(acl.resource_name for acl in row.matching_acls)
        for row in answer.filter_results
    ]


async def describe(client: Connection, version: int = 3, **fields: Any) -> Any:
    """The error, or the names of the resources."""
    answer = await client.ask(DESCRIBE, version, **make_filter(**fields))
    return answer.error_code or [row.resource_name for row in answer.resources]


async def heartbeat(client: Connection, **fields: Any) -> ErrorCode:
    answer = await client.ask(HEARTBEAT, 1, **fields)
    return ErrorCode(answer.error_code)


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_acls_are_created_described_and_deleted(version: int) -> None:
    async with run_guarded(ANONYMOUS) as (rig, _), await rig.connect() as client:
        prefixed = creation("team-", resource_pattern_type=PREFIXED, permission_type=DENY)
        assert await create(client, creation(), prefixed, creation(), version=version) == [NONE] * 3
        answer = await client.ask(DESCRIBE, version, **make_filter())
        shown = [
            (row.resource_type, row.resource_name, row.pattern_type, list(row.acls))
            for row in answer.resources
        ]
        assert [row[:3] for row in shown] == [(GROUP, "g", LITERAL), (GROUP, "team-", PREFIXED)]
        (acl,) = shown[1][3]
        assert (acl.principal, acl.host, acl.operation, acl.permission_type) == (
            ANONYMOUS, "*", READ, DENY,
        )  # fmt: skip
        named = make_filter(resource_name_filter="team-a", pattern_type_filter=MATCH)
        assert await describe(client, version, **named) == ["team-"]
        exact = make_filter(resource_name_filter="team-a")
        assert await delete(client, exact, named, version=version) == [[], ["team-"]]
        assert await describe(client, version) == ["g"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"resource_type": 0}, "Invalid resourceType UNKNOWN"),
        ({"resource_type": ANY}, "Invalid resourceType ANY"),
        ({"resource_pattern_type": ANY}, "Invalid patternType ANY"),
        ({"resource_pattern_type": MATCH}, "Invalid patternType MATCH"),
        ({"operation": ANY}, "Invalid operation ANY"),
        ({"permission_type": ANY}, "Invalid permissionType ANY"),
        ({"resource_name": ""}, "Invalid empty resource name"),
        (
            {"resource_type": CLUSTER},
            "The only valid name for the CLUSTER resource is kafka-cluster",
        ),
    ],
)
async def test_an_invalid_acl_fails_by_itself(fields: dict[str, Any], message: str) -> None:
    async with run_guarded(ANONYMOUS) as (rig, authorizer), await rig.connect() as client:
        results = await create(client, creation(**fields), creation("other"))
        assert results == [(ErrorCode.INVALID_REQUEST, message), NONE]
        assert len(authorizer.acls) == 1


async def test_without_an_authorizer_there_are_no_acls() -> None:
    async with run_rig() as rig, await rig.connect() as client:
        disabled = ErrorCode.SECURITY_DISABLED
        assert await describe(client) == disabled
        assert await create(client, creation()) == [(disabled, "No Authorizer is configured.")]
        assert await delete(client, make_filter()) == [disabled]


async def test_acls_need_rights_on_the_cluster() -> None:
    async with run_guarded() as (rig, authorizer), await rig.connect() as client:
        failed = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert await describe(client) == failed
        assert [code for code, _ in await create(client, creation())] == [failed]
        assert await delete(client, make_filter()) == [failed]
        assert not len(authorizer.acls)


async def change(rig: Rig, operation: Operation, pattern: ResourcePattern, is_made: bool) -> None:
    acl = Acl(pattern, Rule(ANONYMOUS, "127.0.0.1", operation, Permission.ALLOW))
    command = CreateAcls if is_made else DeleteAcls
    await rig.runtime.call(command(INTERNAL, (acl,)))


A_GROUP = ResourcePattern(ResourceType.GROUP, "g")
A_TOPIC = ResourcePattern(ResourceType.TOPIC, "t")


async def test_a_heartbeat_is_allowed_and_refused_as_acls_come_and_go() -> None:
    """Its bytes repeat, so that it is served from the cache: an ACL holds there at once too."""
    async with run_guarded() as (rig, _), await rig.connect() as client:
        await rig.create_topic("t", 1)
        refused = ErrorCode.GROUP_AUTHORIZATION_FAILED
        assert await heartbeat(client, **join("g", "m", ("t",))) == refused
        await change(rig, Operation.READ, A_GROUP, True)
        topics = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert await heartbeat(client, **join("g", "m", ("t",))) == topics
        await change(rig, Operation.DESCRIBE, A_TOPIC, True)
        assert await heartbeat(client, **join("g", "m", ("t",))) == ErrorCode.NONE
        for _ in range(3):
            assert await heartbeat(client, **beat("g", "m", 2)) == ErrorCode.NONE
        await change(rig, Operation.READ, A_GROUP, False)
        assert await heartbeat(client, **beat("g", "m", 2)) == refused
        await change(rig, Operation.READ, A_GROUP, True)
        assert await heartbeat(client, **beat("g", "m", 2)) == ErrorCode.NONE


async def test_a_repeated_commit_is_refused_once_its_acl_is_gone() -> None:
    async with run_guarded() as (rig, _), await rig.connect() as client:
        await rig.create_topic("t", 1)
        await change(rig, Operation.READ, A_GROUP, True)
        await change(rig, Operation.READ, A_TOPIC, True)
        for offset in range(5):
            assert await commit_one(client, offset) == ErrorCode.NONE
        await change(rig, Operation.READ, A_TOPIC, False)
        assert await commit_one(client, 5) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        await change(rig, Operation.READ, A_TOPIC, True)
        assert await commit_one(client, 6) == ErrorCode.NONE
        await change(rig, Operation.READ, A_GROUP, False)
        assert await commit_one(client, 7) == ErrorCode.GROUP_AUTHORIZATION_FAILED


async def commit_one(client: Connection, offset: int) -> int:
    topics = commit_topics(8, "t", {0: (offset, "")})
    answer = await client.ask(
        COMMIT, 8, group_id="g", generation_id_or_member_epoch=-1, topics=topics
    )
    (code,) = commit_codes(answer)
    return code
