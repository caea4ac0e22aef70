"""Group configs over the wire: IncrementalAlterConfigs, DescribeConfigs, ListConfigResources.

The codes and messages are those that a Kafka 4.3.0 gave to the same requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from gateway.codec.kio_schema import request_schema
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import ErrorCode
from tests.support.gateway.wire_rig import Rig, run_rig
from tests.support.gateway.wire_steps import CONFIGS, HEARTBEAT, UNPARKED, member_of
from tests.support.waiting import until
from tests.support.wire.connection import Connection
from tests.support.wire.fields import beat, join

ALTER, LIST_RESOURCES = 44, 74
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
STATIC, DEFAULT, DYNAMIC_GROUP = 4, 5, 8
SESSION = "consumer.session.timeout.ms"
BEAT = "consumer.heartbeat.interval.ms"

Change = tuple[str, int, str | None]


def resource(changes: Sequence[Change], name: str = "g", kind: int = GROUP) -> Any:
    wire = request_schema(ALTER)
    configs = tuple(
        wire.AlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in changes
    )
    return wire.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)


async def alter(client: Connection, *resources: Any, version: int = 1, **fields: Any) -> list[Any]:
    """(code, message) of each resource."""
    answer = await client.ask(ALTER, version, resources=resources, **fields)
    assert [(row.resource_type, row.resource_name) for row in answer.responses] == [
        (row.resource_type, row.resource_name) for row in resources
    ]
    return [(row.error_code, row.error_message) for row in answer.responses]


async def alter_one(client: Connection, *changes: Change, **fields: Any) -> Any:
    (result,) = await alter(client, resource(changes), **fields)
    return result


async def describe(
    client: Connection,
    keys: Sequence[str] | None = None,
    version: int = 4,
    group: str = "g",
    **fields: Any,
) -> dict[str, Any]:
    """The rows by their names."""
    wire = request_schema(CONFIGS, version)
    wanted = wire.DescribeConfigsResource(
        resource_type=GROUP,
        resource_name=group,
        configuration_keys=None if keys is None else tuple(keys),
    )
    answer = await client.ask(
        CONFIGS, version, resources=(wanted,), **{"include_synonyms": True, **fields}
    )
    (result,) = answer.results
    assert (result.error_code, result.error_message) == (0, "")
    return {row.name: row for row in result.configs}


def synonyms(row: Any) -> list[tuple[str, str, int]]:
    return [(synonym.name, synonym.value, synonym.source) for synonym in row.synonyms]


OK = (0, None)
BAD = ErrorCode.INVALID_CONFIG
INVALID = ErrorCode.INVALID_REQUEST
RESET = "share.auto.offset.reset"


def invalid_int(value: str) -> tuple[int, str]:
    return BAD, f"Invalid value {value} for configuration {SESSION}: Not a number of type INT"


def outside(name: str, is_above: bool) -> tuple[int, str]:
    bound = "less than or equal to" if is_above else "greater than or equal to"
    kind, _, rest = name.partition(".")
    return BAD, f"{name} must be {bound} group.{kind}.{'max' if is_above else 'min'}.{rest}"


REFUSED: list[tuple[Change, Any]] = [
    ((SESSION, SET, "44999"), outside(SESSION, False)),
    ((SESSION, SET, "60001"), outside(SESSION, True)),
    ((SESSION, SET, "abc"), invalid_int("abc")),
    ((SESSION, SET, ""), invalid_int("")),
    ((SESSION, SET, "5_000"), invalid_int("5_000")),
    ((SESSION, SET, "99999999999"), invalid_int("99999999999")),
    ((SESSION, SET, "9" * 5_000), invalid_int("9" * 5_000)),
    (
        (SESSION, SET, "0"),
        (BAD, f"Invalid value 0 for configuration {SESSION}: Value must be at least 1"),
    ),
    ((SESSION, SET, None), (INVALID, f"Null value not supported for : {SESSION}")),
    (
        (SESSION, APPEND, "1"),
        (BAD, f"Can't APPEND to key {SESSION} because its type is not LIST."),
    ),
    (
        (SESSION, SUBTRACT, "1"),
        (BAD, f"Can't SUBTRACT to key {SESSION} because its type is not LIST."),
    ),
    (("nope", SET, "1"), (BAD, "Unknown group config name: nope")),
    (("", SET, "1"), (BAD, "Unknown group config name: ")),
    ((BEAT, SET, "4999"), outside(BEAT, False)),
    ((BEAT, SET, "15001"), outside(BEAT, True)),
    (
        ("consumer.assignment.interval.ms", SET, "-1"),
        (
            BAD,
            "Invalid value -1 for configuration consumer.assignment.interval.ms: Value must be at "
            "least 0",
        ),
    ),
    (
        ("consumer.assignment.interval.ms", SET, "15001"),
        outside("consumer.assignment.interval.ms", True),
    ),
    (
        ("share.isolation.level", SET, "READ_COMMITTED"),
        (
            BAD,
            "Invalid value READ_COMMITTED for configuration share.isolation.level: String must be "
            "one of: read_committed, read_uncommitted",
        ),
    ),
    (
        ("share.record.lock.duration.ms", SET, "1"),
        (
            BAD,
            "Invalid value 1 for configuration share.record.lock.duration.ms: Value must be at "
            "least 1000",
        ),
    ),
    (
        ("streams.num.standby.replicas", SET, "9"),
        (
            BAD,
            "streams.num.standby.replicas must be less than or equal to "
            "group.streams.max.standby.replicas",
        ),
    ),
    (("streams.session.timeout.ms", SET, "10"), outside("streams.session.timeout.ms", False)),
    (
        ("share.renew.acknowledge.enable", SET, "maybe"),
        (
            BAD,
            "Invalid value maybe for configuration share.renew.acknowledge.enable: Expected value "
            "to be either true or false",
        ),
    ),
]


@pytest.mark.parametrize(("change", "expected"), REFUSED)
async def test_what_kafka_refuses(change: Change, expected: tuple[int, str]) -> None:
    async with run_rig() as rig, await rig.connect() as client:
        assert await alter_one(client, change) == expected
        assert await alter_one(client, (RESET, SET, "latest"), change) == expected, "all or none"
        rows = await describe(client)
        assert {row.config_source for row in rows.values()} == {DEFAULT}


@pytest.mark.parametrize(
    "value", ["by_duration:-PT1H", "by_duration:", "EARLIEST", "by_duration:PT", "foo"]
)
async def test_where_a_share_group_cannot_begin(value: str) -> None:
    async with run_rig() as rig, await rig.connect() as client:
        code, message = await alter_one(client, (RESET, SET, value))
        assert code == BAD
        assert message.startswith(f"Invalid value {value} for configuration {RESET}: ")


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ((SESSION, SET, " 50000 "), "50000"),
        ((SESSION, SET, "+50000"), "50000"),
        ((BEAT, SET, "6000"), "6000"),
        (("consumer.assignment.interval.ms", SET, "500"), "500"),
        ((RESET, SET, "earliest"), "earliest"),
        ((RESET, SET, "by_duration:P1DT2H3M4.5S"), "by_duration:P1DT2H3M4.5S"),
        ((RESET, SET, "by_duration:pt1h"), "by_duration:pt1h"),
        (("share.session.timeout.ms", SET, "50000"), "50000"),
        (("share.delivery.count.limit", SET, "3"), "3"),
        (("share.renew.acknowledge.enable", SET, " TRUE "), "true"),
        (("streams.initial.rebalance.delay.ms", SET, "0"), "0"),
        (("consumer.assignors", SET, "range, uniform"), "range,uniform"),
        (("consumer.assignors", SUBTRACT, "uniform"), "range"),
        (("consumer.assignors", APPEND, "range"), "uniform,range"),
        (("consumer.max.size", SET, "1"), "1"),
        (("offsets.retention.minutes", SET, "1"), "1"),
    ],
)
async def test_what_is_taken(change: Change, shown: str) -> None:
    async with run_rig() as rig, await rig.connect() as client:
        assert await alter_one(client, change) == OK
        row = (await describe(client))[change[0]]
        assert (row.value, row.config_source, row.read_only) == (shown, DYNAMIC_GROUP, False)
        assert await alter_one(client, (change[0], DELETE, None)) == OK
        row = (await describe(client))[change[0]]
        assert row.config_source == DEFAULT


async def test_requests_that_are_wrong_in_themselves() -> None:
    async with run_rig() as rig, await rig.connect() as client:
        await rig.create_topic("t", 1)
        change = (BEAT, SET, "7000")
        assert await alter_one(client, change, (BEAT, SET, "8000")) == (
            INVALID,
            "Error due to duplicate config keys",
        )
        assert (
            await alter(client, resource([change]), resource([change]))
            == [(INVALID, "Each resource must appear at most once.")] * 2
        )
        assert await alter(client, resource([change], name="")) == [
            (INVALID, "Default group resources are not allowed.")
        ]
        assert await alter_one(client) == OK
        assert await alter_one(client, ("nope", DELETE, None)) == OK
        assert (await alter_one(client, (BEAT, 9, "1")))[0] == ErrorCode.UNKNOWN_SERVER_ERROR
        codes = [
            (kind, (await alter(client, resource([change], name=name, kind=kind)))[0][0])
            for kind, name in (
                (0, "g"),
                (33, "g"),
                (TOPIC, "t"),
                (TOPIC, "none"),
                (BROKER, "1"),
                (LOGGER, "1"),
                (METRICS, "m"),
            )
        ]
        assert codes == [
            (0, INVALID),
            (33, INVALID),
            (TOPIC, INVALID),
            (TOPIC, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (BROKER, INVALID),
            (LOGGER, INVALID),
            (METRICS, INVALID),
        ]


@pytest.mark.parametrize("version", [0, 1])
async def test_the_session_must_be_longer_than_the_interval(version: int) -> None:
    settings = CoordinatorSettings(
        group_consumer_min_session_timeout_ms=1_000,
        group_consumer_session_timeout_ms=30_000,
        group_consumer_max_heartbeat_interval_ms=60_000,
    )
    refused = (BAD, f"{SESSION} must be greater than {BEAT}")
    async with run_rig(coordinator=settings) as rig, await rig.connect() as client:
        for changes in (
            [(BEAT, SET, "30000")],
            [(SESSION, SET, "4000")],
            [(SESSION, SET, "6000"), (BEAT, SET, "6000")],
        ):
            assert await alter_one(client, *changes, version=version) == refused
        both = [(SESSION, SET, "9000"), (BEAT, SET, "8999")]
        assert await alter_one(client, *both, version=version, validate_only=True) == OK
        assert (await describe(client))[SESSION].value == "30000"
        assert await alter_one(client, *both, version=version) == OK
        assert (await describe(client))[SESSION].value == "9000"


async def test_synonyms_say_where_a_value_is_from() -> None:
    settings = CoordinatorSettings(group_consumer_session_timeout_ms=50_000)
    server = "group.consumer.session.timeout.ms"
    async with run_rig(coordinator=settings) as rig, await rig.connect() as client:
        row = (await describe(client, [SESSION, "nope"]))[SESSION]
        assert (row.value, row.config_source, row.config_type) == ("50000", STATIC, 3)
        assert synonyms(row) == [(server, "50000", STATIC), (server, "45000", DEFAULT)]
        assert row.documentation is None
        assert await alter_one(client, (SESSION, SET, "55000")) == OK
        for version in range(1, 5):
            rows = await describe(client, [SESSION, RESET], version)
            assert (rows[SESSION].value, rows[SESSION].config_source) == ("55000", DYNAMIC_GROUP)
            assert synonyms(rows[SESSION]) == [
                (SESSION, "55000", DYNAMIC_GROUP),
                (server, "50000", STATIC),
                (server, "45000", DEFAULT),
            ]
            assert synonyms(rows[RESET]) == [(RESET, "latest", DEFAULT)]
        row = (await describe(client, include_synonyms=False, include_documentation=True))[SESSION]
        assert (row.synonyms, bool(row.documentation)) == ((), True)
        assert (await describe(client, [SESSION], group="other"))[SESSION].value == "50000"


async def test_an_interval_is_told_with_the_next_heartbeat() -> None:
    async with run_rig(UNPARKED) as rig, await rig.connect() as client:
        await rig.create_topic("t", 1)
        epoch = await member_of(client, "g")
        for _ in range(3):
            answer = await client.ask(HEARTBEAT, 1, **beat("g", "m", epoch))
            assert answer.heartbeat_interval == 5_000
        assert await alter_one(client, (BEAT, SET, "7000")) == OK
        answer = await client.ask(HEARTBEAT, 1, **beat("g", "m", epoch))
        assert answer.heartbeat_interval == 7_000, "also where the answer was kept"
        assert await alter_one(client, (BEAT, DELETE, None)) == OK
        answer = await client.ask(HEARTBEAT, 1, **beat("g", "m", epoch))
        assert answer.heartbeat_interval == 5_000


async def test_a_session_timeout_holds_from_the_next_heartbeat_on() -> None:
    settings = CoordinatorSettings(
        group_consumer_min_session_timeout_ms=100, group_consumer_heartbeat_interval_ms=50
    )
    async with run_rig(UNPARKED, settings) as rig, await rig.connect() as client:
        await rig.create_topic("t", 1)
        epoch = await member_of(client, "g")
        await member_of(client, "other")
        assert await alter_one(client, (SESSION, SET, "100")) == OK
        assert (await client.ask(HEARTBEAT, 1, **beat("g", "m", epoch))).error_code == 0
        await until(lambda: count_members(rig) == {"g": 0, "other": 1})


def count_members(rig: Rig) -> dict[str, int]:
    return {group.group_id: group.member_count for group in rig.runtime.groups()}


async def test_a_group_of_its_own_size_and_assignor() -> None:
    async with run_rig(UNPARKED) as rig, await rig.connect() as client:
        await rig.create_topic("t", 2)
        changes = [("consumer.max.size", SET, "1"), ("consumer.assignors", SET, "range")]
        assert await alter_one(client, *changes) == OK
        for group, size_code, assignor_code in (
            ("g", ErrorCode.GROUP_MAX_SIZE_REACHED, ErrorCode.UNSUPPORTED_ASSIGNOR),
            ("other", 0, 0),
        ):
            asked = join(group, "m1", ("t",), server_assignor="uniform")
            assert (await client.ask(HEARTBEAT, 1, **asked)).error_code == assignor_code
            assert (await client.ask(HEARTBEAT, 1, **join(group, "m1", ("t",)))).error_code == 0
            answer = await client.ask(HEARTBEAT, 1, **join(group, "m2", ("t",)))
            assert answer.error_code == size_code


async def test_what_has_settings_is_listed() -> None:
    async with run_rig() as rig, await rig.connect() as client:
        await rig.create_topic("t", 1)
        change = [("consumer.max.size", SET, "5")]
        assert await alter(client, resource(change, "b"), resource(change, "a")) == [OK, OK]

        async def listed(version: int = 1, **fields: Any) -> Any:
            answer = await client.ask(LIST_RESOURCES, version, **fields)
            rows = [(row.resource_type, row.resource_name) for row in answer.config_resources]
            return answer.error_code, rows

        node = str(UNPARKED.node_id)
        assert await listed(resource_types=(GROUP,)) == (0, [(GROUP, "a"), (GROUP, "b")])
        assert await listed(resource_types=(TOPIC,)) == (0, [(TOPIC, "t")])
        assert await listed(resource_types=()) == (
            0,
            [(GROUP, "a"), (GROUP, "b"), (LOGGER, node), (BROKER, node), (TOPIC, "t")],
        )
        assert await listed(resource_types=(99,)) == (ErrorCode.UNSUPPORTED_VERSION, [])
        answer = await client.ask(LIST_RESOURCES, 0)
        assert (answer.error_code, answer.config_resources) == (0, ())
