"""What administrators do on a side, done when it is seen to be done: topics and group settings."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from model.errors import ErrorCode
from tests.support.waiting import Patience, until_answered
from tests.support.wire.connection import Connection

METADATA, CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS = 3, 19, 20, 37
DESCRIBE_CONFIGS, ALTER_CONFIGS, FIND_COORDINATOR = 32, 44, 10
DELETE_GROUPS, HEARTBEAT, DESCRIBE = 42, 68, 69
GROUP_RESOURCE = 32
SET, DELETE = 0, 1
ANSWERED_IN_S = 120.0
"""Which a Kafka on a busy machine may take."""
_PATIENCE_S = 20.0
_PAUSE_S = 0.01
T = TypeVar("T")
_marks: Final = itertools.cycle(range(1_000, 15_000))


def make_patience(within_s: float) -> Patience:
    """One that asks a side as often as if it had half a processor to itself."""
    return Patience(within_s, within_s / _PAUSE_S / 2)


async def wait_until(
    condition: Callable[[], Awaitable[bool]], what: str, within_s: float = _PATIENCE_S
) -> None:
    """Ask until the condition holds. Raises `NotInTime`."""
    await until_answered(condition, what=what, patience=make_patience(within_s), pause_s=_PAUSE_S)


async def ask_while(
    ask: Callable[[], Awaitable[T]], is_passing: Callable[[T], bool], within_s: float = 1.0
) -> T:
    """Ask again while the answer is one that passes by itself; the last one, after so long."""
    patience = make_patience(within_s)
    answer = await ask()
    while is_passing(answer) and not patience.is_over():
        await asyncio.sleep(_PAUSE_S)
        answer = await ask()
    return answer


async def wait_for_coordinator(connection: Connection) -> None:
    """Until every partition of the log of the groups is there."""

    async def is_there() -> bool:
        keys = tuple(f"any-{number}" for number in range(100))
        found = await connection.ask(FIND_COORDINATOR, 4, key_type=0, coordinator_keys=keys)
        if any(row.error_code for row in found.coordinators):
            return False
        described = await connection.ask(DESCRIBE, 1, group_ids=keys)
        return all(row.error_code == ErrorCode.GROUP_ID_NOT_FOUND for row in described.groups)

    await wait_until(is_there, "not all groups have a coordinator", 60.0)


async def describe_topics(
    connection: Connection, names: Iterable[str]
) -> dict[str, tuple[bytes, int]]:
    """Id and number of partitions of those topics that are there."""
    wanted = [{"name": name} for name in names]
    answer = await connection.ask(METADATA, 12, topics=wanted, allow_auto_topic_creation=False)
    return {
        topic.name: (bytes(topic.topic_id), len(topic.partitions))
        for topic in answer.topics
        if not topic.error_code
    }


async def create_topic(connection: Connection, name: str, partitions: int) -> int:
    """The error code."""
    topic = {"name": name, "num_partitions": partitions, "replication_factor": 1}
    answer = await connection.ask(CREATE_TOPICS, 7, topics=[topic], timeout=30_000)
    code = int(answer.topics[0].error_code)
    if not code:
        await _wait_for_partitions(connection, name, partitions)
    return code


async def grow_topic(connection: Connection, name: str, partitions: int) -> int:
    topic = {"name": name, "count": partitions, "assignments": None}
    answer = await connection.ask(CREATE_PARTITIONS, 3, topics=[topic], timeout=30_000)
    code = int(answer.results[0].error_code)
    if not code:
        await _wait_for_partitions(connection, name, partitions)
    return code


async def delete_topic(connection: Connection, name: str) -> int:
    topic = {"name": name, "topic_id": bytes(16)}
    answer = await connection.ask(DELETE_TOPICS, 6, topics=[topic], timeout=30_000)
    code = int(answer.responses[0].error_code)
    if not code:
        await _wait_for_partitions(connection, name, 0)
    return code


async def _wait_for_partitions(connection: Connection, name: str, partitions: int) -> None:
    """Until a member of a group gets so many; the metadata of a broker show them earlier."""
    group_id = f"probe-{name}"

    async def is_seen() -> bool:
        answer = await connection.ask(
            HEARTBEAT,
            1,
            group_id=group_id,
            member_id="probe",
            member_epoch=0,
            rebalance_timeout=10_000,
            subscribed_topic_names=(name,),
            topic_partitions=(),
        )
        assert not answer.error_code, answer
        found = sum(len(topic.partitions) for topic in answer.assignment.topic_partitions)
        if found != partitions:
            leaving = {"group_id": group_id, "member_id": "probe", "member_epoch": -1}
            await connection.ask(HEARTBEAT, 1, **leaving)
        return found == partitions

    await wait_until(is_seen, f"topic {name} does not have {partitions} partitions")
    await connection.ask(HEARTBEAT, 1, group_id=group_id, member_id="probe", member_epoch=-1)
    await connection.ask(DELETE_GROUPS, 2, groups_names=(group_id,))


async def alter_group(connection: Connection, group_id: str, settings: Mapping[str, Any]) -> None:
    """Set settings of a group, and unset those that are ``None``; they are in force then.

    What a broker shows of a group's settings reaches its coordinator a moment later, before the
    broker shows the next change.
    """
    await _alter_group(connection, group_id, settings)
    mark = {"consumer.heartbeat.interval.ms": next(_marks)}
    await _alter_group(connection, f"mark-{id(connection)}", mark)


async def _alter_group(connection: Connection, group_id: str, settings: Mapping[str, Any]) -> None:
    """Until they are shown."""
    rows = [
        {
            "name": name,
            "config_operation": DELETE if value is None else SET,
            "value": None if value is None else str(value),
        }
        for name, value in settings.items()
    ]
    resource = {"resource_type": GROUP_RESOURCE, "resource_name": group_id, "configs": rows}
    answer = await connection.ask(ALTER_CONFIGS, 1, resources=[resource])
    (result,) = answer.responses
    assert not result.error_code, result

    async def is_seen() -> bool:
        wanted = {
            "resource_type": GROUP_RESOURCE,
            "resource_name": group_id,
            "configuration_keys": list(settings),
        }
        found = await connection.ask(DESCRIBE_CONFIGS, 4, resources=[wanted])
        dynamic = {
            row.name: row.value
            for row in found.results[0].configs
            if row.config_source == _DYNAMIC_GROUP
        }
        return all(
            dynamic.get(name) == (None if value is None else str(value))
            for name, value in settings.items()
        )

    await wait_until(is_seen, f"{group_id} has not the settings {settings}")


_DYNAMIC_GROUP = 8
"""Kafka's ConfigSource DYNAMIC_GROUP_CONFIG."""
