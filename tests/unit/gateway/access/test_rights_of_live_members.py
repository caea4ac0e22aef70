"""A right that is taken away from a live member holds from its next heartbeat on."""

from __future__ import annotations

import asyncio
from typing import Any

from gateway.settings import GatewaySettings
from model.access.acls import Operation, ResourceType
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import ErrorCode
from tests.support.authorizers import Rights
from tests.support.gateway.wire_rig import run_rig, topic_id_of
from tests.support.gateway.wire_steps import HEARTBEAT, JOIN, UNPARKED, join_fields, member_of
from tests.support.wire.connection import Connection
from tests.support.wire.fields import beat, join

READ_GROUP = (Operation.READ, ResourceType.GROUP, "g")
DESCRIBE_TOPIC = (Operation.DESCRIBE, ResourceType.TOPIC, "t")
NO_GROUP = ErrorCode.GROUP_AUTHORIZATION_FAILED
NO_TOPIC = ErrorCode.TOPIC_AUTHORIZATION_FAILED
STEADY = 4
"""Heartbeats after which the next one is answered from memory."""


async def settle(client: Connection, epoch: int) -> None:
    for _ in range(STEADY):
        assert (await client.ask(HEARTBEAT, 1, **beat("g", "m", epoch))).error_code == 0


def assigned(answer: Any) -> set[bytes]:
    if answer.assignment is None:
        return set()
    return {topic.topic_id for topic in answer.assignment.topic_partitions}


async def test_a_member_that_may_no_longer_see_its_topic_is_refused() -> None:
    """Its heartbeats name no topic, as those of Java's consumer once it has joined."""
    rights = Rights()
    async with run_rig(UNPARKED, authorizer=rights) as rig, await rig.connect() as client:
        await rig.create_topic("t", 1)
        await rig.create_topic("u", 1)
        epoch = await member_of(client, "g")
        await settle(client, epoch)
        rights.denied = {DESCRIBE_TOPIC}
        for _ in range(2):
            answer = await client.ask(HEARTBEAT, 1, **beat("g", "m", epoch))
            assert (answer.error_code, answer.assignment) == (NO_TOPIC, None)
        rights.denied = set()
        await settle(client, epoch)


async def test_a_refused_member_may_subscribe_to_other_topics() -> None:
    rights = Rights()
    async with run_rig(UNPARKED, authorizer=rights) as rig, await rig.connect() as client:
        await rig.create_topic("t", 1)
        await rig.create_topic("u", 1)
        epoch = await member_of(client, "g")
        rights.denied = {DESCRIBE_TOPIC}
        answer = await client.ask(
            HEARTBEAT, 1, **beat("g", "m", epoch, subscribed_topic_names=("u",))
        )
        assert answer.error_code == 0
        fields = beat("g", "m", epoch, topic_partitions=())
        while topic_id_of("u") not in assigned(answer):
            answer = await client.ask(HEARTBEAT, 1, **fields)
            assert answer.error_code == 0
            assert topic_id_of("t") not in assigned(answer)
            fields = beat("g", "m", answer.member_epoch, topic_partitions=())


async def test_a_pattern_no_longer_stands_for_a_topic_that_was_taken_away() -> None:
    rights = Rights()
    async with run_rig(UNPARKED, authorizer=rights) as rig, await rig.connect() as client:
        await rig.create_topic("t", 1)
        await rig.create_topic("t2", 1)
        pattern = join("g", "m", (), subscribed_topic_regex="t.*")
        answer = await client.ask(HEARTBEAT, 1, **pattern)
        while len(assigned(answer)) < 2:
            answer = await client.ask(
                HEARTBEAT, 1, **beat("g", "m", answer.member_epoch, topic_partitions=())
            )
        epoch = answer.member_epoch
        rights.denied = {DESCRIBE_TOPIC}
        async with asyncio.timeout(10):
            while assigned(answer) != {topic_id_of("t2")}:
                # It claims nothing, so that each answer has all that it may have.
                answer = await client.ask(
                    HEARTBEAT, 1, **beat("g", "m", epoch, topic_partitions=())
                )
                assert topic_id_of("t") not in assigned(answer)
                if answer.error_code == 0:
                    epoch = answer.member_epoch
                else:
                    assert answer.error_code == NO_TOPIC
                    await asyncio.sleep(0.02)


async def park(client: Connection, epoch: int) -> asyncio.Task[Any]:
    """A heartbeat that is held."""
    async with asyncio.timeout(10):
        while True:
            asked = asyncio.create_task(client.ask(HEARTBEAT, 1, **beat("g", "m", epoch)))
            await asyncio.sleep(0.1)
            if not asked.done():
                return asked
            assert asked.result().error_code == 0


async def test_a_parked_heartbeat_is_refused_at_the_end_of_its_park() -> None:
    """The first one that is held was decoded, the later ones are answered from memory."""
    rights = Rights()
    settings = GatewaySettings(gateway_park_ms=300)
    async with run_rig(settings, authorizer=rights) as rig, await rig.connect() as client:
        await rig.create_topic("t", 1)
        epoch = await member_of(client, "g")
        for held_before in range(3):
            for _ in range(held_before):
                assert (await (await park(client, epoch))).error_code == 0
            held = await park(client, epoch)
            rights.denied = {READ_GROUP}
            assert (await held).error_code == NO_GROUP
            rights.denied = set()


async def test_a_join_that_waited_for_others_is_refused() -> None:
    rights = Rights()
    settings = CoordinatorSettings(group_initial_rebalance_delay_ms=300)
    async with (
        run_rig(coordinator=settings, authorizer=rights) as rig,
        await rig.connect() as client,
    ):
        waiting = asyncio.create_task(client.ask(JOIN, 3, **join_fields(3, "g")))
        await asyncio.sleep(0.1)
        assert not waiting.done(), "it waits for other members"
        rights.denied = {READ_GROUP}
        answer = await waiting
        assert (answer.error_code, answer.members) == (NO_GROUP, ())
