"""DescribeClientQuotas and AlterClientQuotas over the wire."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.runtime.authorizer import AclAuthorizer
from gateway.codec.kio_schema import request_schema
from model.access.acls import Acl, Operation, Permission, ResourcePattern, ResourceType, Rule
from model.caller import ANONYMOUS, INTERNAL, Caller
from model.commands.access import CreateAcls
from model.errors import ErrorCode
from security.quotas.client_quotas import ClientQuotas
from tests.support.gateway.wire_door import Gateway
from tests.support.gateway.wire_rig import Rig, run_rig
from tests.support.gateway.wire_steps import HEARTBEAT, UNPARKED
from tests.support.wire.connection import Connection
from tests.support.wire.fields import beat, join

DESCRIBE, ALTER = 48, 49
EXACT, DEFAULT, SPECIFIED = 0, 1, 2


async def alter(
    client: Connection,
    *entries: tuple[dict[str, str | None], dict[str, float | None]],
    version: int = 1,
    validate_only: bool = False,
) -> list[tuple[int, str | None]]:
    """(code, message) of each entity."""
    wire = request_schema(ALTER, version)
    made = tuple(
        wire.EntryData(
            entity=tuple(
                wire.EntityData(entity_type=kind, entity_name=name) for kind, name in who.items()
            ),
            ops=tuple(
                wire.OpData(key=key, value=0.0 if value is None else value, remove=value is None)
                for key, value in changes.items()
            ),
        )
        for who, changes in entries
    )
    answer = await client.ask(ALTER, version, entries=made, validate_only=validate_only)
    return [(row.error_code, row.error_message) for row in answer.entries]


async def describe(
    client: Connection, *parts: tuple[str, int, str | None], version: int = 1, strict: bool = False
) -> Any:
    """The error, or the quotas by entity."""
    wire = request_schema(DESCRIBE, version)
    components = tuple(
        wire.ComponentData(entity_type=kind, match_type=match_type, match=match)
        for kind, match_type, match in parts
    )
    answer = await client.ask(DESCRIBE, version, components=components, strict=strict)
    if answer.error_code:
        assert answer.entries is None
        return answer.error_code, answer.error_message
    return [
        (
            {each.entity_type: each.entity_name for each in row.entity},
            {each.key: each.value for each in row.values},
        )
        for row in answer.entries
    ]


OK = (ErrorCode.NONE, None)


@pytest.mark.parametrize("version", [0, 1])
async def test_quotas_are_altered_and_described(version: int) -> None:
    async with run_rig(UNPARKED) as rig, await rig.connect() as client:
        alice: dict[str, str | None] = {"user": "alice"}
        both: dict[str, str | None] = {"user": "alice", "client-id": None}
        address: dict[str, str | None] = {"ip": "10.0.0.1"}
        assert (
            await alter(
                client,
                (alice, {"request_percentage": 50.0}),
                (both, {"producer_byte_rate": 1_024.0, "consumer_byte_rate": 2_048.0}),
                (address, {"connection_creation_rate": 10.0}),
                ({"client-id": "c"}, {"commit_rate": 0.5}),
                version=version,
            )
            == [OK] * 4
        )
        everything = await describe(client, version=version)
        assert len(everything) == 4
        assert await describe(client, ("user", EXACT, "alice"), version=version) == [
            (alice, {"request_percentage": 50.0}),
            (both, {"consumer_byte_rate": 2_048.0, "producer_byte_rate": 1_024.0}),
        ]
        assert await describe(client, ("user", EXACT, "alice"), strict=True) == [
            (alice, {"request_percentage": 50.0})
        ]
        assert await describe(client, ("client-id", DEFAULT, None), version=version) == [
            (both, {"consumer_byte_rate": 2_048.0, "producer_byte_rate": 1_024.0})
        ]
        assert await describe(client, ("ip", SPECIFIED, None), version=version) == [
            (address, {"connection_creation_rate": 10.0})
        ]
        assert await describe(client, ("client-id", SPECIFIED, None), strict=True) == [
            ({"client-id": "c"}, {"commit_rate": 0.5})
        ]
        assert await describe(client, ("user", EXACT, "bob"), version=version) == []
        assert await alter(client, (alice, {"request_percentage": None}), version=version) == [OK]
        assert await describe(client, ("user", EXACT, "alice"), strict=True) == []


async def test_an_entity_is_refused_on_its_own_and_what_is_checked_is_not_done() -> None:
    async with run_rig(UNPARKED) as rig, await rig.connect() as client:
        who: dict[str, str | None] = {"user": "a"}
        found = await alter(
            client,
            (who, {"request_percentage": 1.0}),
            ({"user": "b"}, {"nonsense": 1.0}),
            validate_only=True,
        )
        assert found[0] == OK
        assert found[1] == (ErrorCode.INVALID_REQUEST, "Invalid configuration key nonsense")
        assert await describe(client) == []


@pytest.mark.parametrize(
    ("parts", "code"),
    [
        ([("", EXACT, "a")], ErrorCode.INVALID_REQUEST),
        ([("user", EXACT, None)], ErrorCode.INVALID_REQUEST),
        ([("user", DEFAULT, "a")], ErrorCode.INVALID_REQUEST),
        ([("user", SPECIFIED, "a")], ErrorCode.INVALID_REQUEST),
        ([("user", 7, None)], ErrorCode.INVALID_REQUEST),
        ([("user", EXACT, "a"), ("user", EXACT, "b")], ErrorCode.INVALID_REQUEST),
        ([("user", EXACT, "a"), ("ip", EXACT, "10.0.0.1")], ErrorCode.INVALID_REQUEST),
        ([("broker", EXACT, "a")], ErrorCode.UNSUPPORTED_VERSION),
    ],
)
async def test_filters_that_are_refused(
    parts: list[tuple[str, int, str | None]], code: ErrorCode
) -> None:
    async with run_rig(UNPARKED) as rig, await rig.connect() as client:
        found = await describe(client, *parts)
        assert found[0] == code


async def test_quotas_need_rights_on_the_cluster() -> None:
    authorizer = AclAuthorizer()
    async with run_rig(UNPARKED, authorizer=authorizer) as rig, await rig.connect() as client:
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        who: dict[str, str | None] = {"user": "a"}
        assert [row[0] for row in await alter(client, (who, {"request_rate": 1.0}))] == [code]
        assert (await describe(client))[0] == code
        await allow(rig, Operation.DESCRIBE_CONFIGS)
        assert await describe(client) == []
        assert [row[0] for row in await alter(client, (who, {"request_rate": 1.0}))] == [code]
        await allow(rig, Operation.ALTER_CONFIGS)
        assert await alter(client, (who, {"request_rate": 1.0})) == [OK]


def test_who_may_alter_nothing_is_refused_in_slices() -> None:
    """However many entities the request names."""
    entities, per_slice = 2_000, 100
    gateway = Gateway(authorizer=AclAuthorizer())
    door = gateway.connect()
    wire = request_schema(ALTER, 1)
    entries = tuple(
        wire.EntryData(
            entity=(wire.EntityData(entity_type="user", entity_name=f"u{number}"),), ops=()
        )
        for number in range(entities)
    )
    request = wire.AlterClientQuotasRequest(entries=entries, validate_only=False)
    caller = Caller(ANONYMOUS, "c", "/127.0.0.1")
    context = door.connection.reopen(b"\0\x31\0\x01", b"\0\0\0\x07", caller, b"")
    context.api.handler(context, request)
    turns = 0
    while gateway.clock.turn():
        turns += 1
    assert turns >= entities / per_slice
    [(_, answer)] = door.answers(ALTER, 1)
    codes = {row.error_code for row in answer.entries}
    assert (len(answer.entries), codes) == (entities, {ErrorCode.CLUSTER_AUTHORIZATION_FAILED})


async def allow(rig: Rig, operation: Operation) -> None:
    pattern = ResourcePattern(ResourceType.CLUSTER, "kafka-cluster")
    rule = Rule(ANONYMOUS, "*", operation, Permission.ALLOW)
    await rig.runtime.call(CreateAcls(INTERNAL, (Acl(pattern, rule),)))


async def test_a_quota_holds_for_new_connections_at_once_and_for_others_within_a_second() -> None:
    quotas = ClientQuotas()
    async with run_rig(UNPARKED, quotas=quotas) as rig, await rig.connect() as older:
        await older.ask(HEARTBEAT, 1, **join("g", "m", ()))
        who: dict[str, str | None] = {"user": "ANONYMOUS"}
        assert await alter(older, (who, {"request_rate": 0.1})) == [OK]
        async with await rig.connect() as newer:
            times = [(await newer.ask(HEARTBEAT, 1, **beat("g", "m", 1))).throttle_time]
            times.append((await newer.ask(HEARTBEAT, 1, **beat("g", "m", 1))).throttle_time)
        assert times[0] == 0
        assert 900 < times[1] <= 1_000
        while not (await older.ask(HEARTBEAT, 1, **beat("g", "m", 1))).throttle_time:
            pass
