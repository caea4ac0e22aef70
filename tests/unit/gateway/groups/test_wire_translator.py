"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup on a consumer group over the wire."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gateway.codec.kio_schema import request_schema
from model.configs.coordinator_settings import CoordinatorSettings
from muster.assignors import embedded
from tests.support.gateway.fake_coordinator import VirtualClock
from tests.support.gateway.wire_rig import HEARTBEAT as CONSUMER_HEARTBEAT
from tests.support.gateway.wire_rig import Rig, run_rig
from tests.support.gateway.wire_steps import DESCRIBE, JOIN, SYNC, UNPARKED, join_fields
from tests.support.waiting import until
from tests.support.wire.connection import Connection
from tests.support.wire.fields import beat as consumer_beat
from tests.support.wire.fields import join as consumer_join
from tests.unit.gateway.groups.test_wire_classic_groups import (
    HEARTBEAT,
    HEARTBEAT_VERSIONS,
    LEAVE,
    LEAVE_VERSIONS,
    SYNC_VERSIONS,
)

SUBSCRIPTION = embedded.encode_subscription(embedded.make_subscription(["t"]))


@pytest.mark.parametrize("version", range(10))
async def test_a_classic_member_joins_a_consumer_group_and_is_shown(version: int) -> None:
    async with run_rig(UNPARKED) as rig, await rig.connect() as new, await rig.connect() as old:
        await rig.create_topic("t", 2)
        await new.ask(CONSUMER_HEARTBEAT, 1, **consumer_join("g", "m1", ("t",)))
        protocol = request_schema(JOIN, version).JoinGroupRequestProtocol
        said = {"protocols": (protocol(name="range", metadata=SUBSCRIPTION),)}
        joined = await old.ask(JOIN, version, **{**join_fields(version, "g"), **said})
        if version >= 4:
            assert joined.error_code == 79
            fields = join_fields(version, "g", joined.member_id)
            joined = await old.ask(JOIN, version, **{**fields, **said})
        member = joined.member_id
        assert (joined.error_code, joined.generation_id) == (0, 3)
        assert (joined.leader, joined.protocol_name, joined.members) == ("", "range", ())
        who = {"group_id": "g", "member_id": member, "generation_id": 3}

        sync_version = SYNC_VERSIONS[version]
        named = {"protocol_type": "consumer", "protocol_name": "range"}
        fields = {**who, "assignments": (), **(named if sync_version >= 5 else {})}
        synced = await old.ask(SYNC, sync_version, **fields)
        assert synced.error_code == 0
        assert embedded.decode_assignment(synced.assignment).partitions == ()
        alive = await old.ask(HEARTBEAT, HEARTBEAT_VERSIONS[version], **who)
        assert alive.error_code == 0
        described = await new.ask(DESCRIBE, 1, group_ids=("g",))
        types = {each.member_id: each.member_type for each in described.groups[0].members}
        assert types == {"m1": 1, member: 0}

        leave_version = LEAVE_VERSIONS[version]
        if leave_version < 3:
            left = await old.ask(LEAVE, leave_version, group_id="g", member_id=member)
        else:
            identity = request_schema(LEAVE, leave_version).MemberIdentity
            members = (identity(member_id=member, group_instance_id=None),)
            left = await old.ask(LEAVE, leave_version, group_id="g", members=members)
        assert left.error_code == 0
        gone = await old.ask(HEARTBEAT, HEARTBEAT_VERSIONS[version], **who)
        assert gone.error_code == 25


@asynccontextmanager
async def run_group(policy: str) -> AsyncIterator[tuple[Rig, VirtualClock, Connection, Connection]]:
    """A group of a consumer member m1, which has both partitions of t, and its connection; and one
    of a classic member that has joined, with the clock of the wire."""
    clock = VirtualClock()
    settings = CoordinatorSettings(group_consumer_migration_policy=policy)
    async with (
        run_rig(coordinator=settings, clock=clock) as rig,
        await rig.connect() as new,
        await rig.connect() as old,
    ):
        await rig.create_topic("t", 2)
        await new.ask(CONSUMER_HEARTBEAT, 1, **consumer_join("g", "m1", ("t",)))
        yield rig, clock, new, old


async def join_as_classic(old: Connection) -> dict[str, Any]:
    """Join as a classic member; return the fields that identify it in later requests."""
    protocol = request_schema(JOIN, 3).JoinGroupRequestProtocol
    said = {"protocols": (protocol(name="range", metadata=SUBSCRIPTION),)}
    joined = await old.ask(JOIN, 3, **{**join_fields(3, "g"), **said})
    return {
        "group_id": "g",
        "member_id": joined.member_id,
        "generation_id": joined.generation_id,
    }


async def wait_until_parked(rig: Rig) -> None:
    await until(lambda: len(rig.runtime.parts.watches) > 0, "a request is parked")


@pytest.mark.parametrize("policy", ["bidirectional", "disabled"])
async def test_a_parked_classic_member_hears_at_once_that_it_has_a_step(policy: str) -> None:
    """The last consumer member leaves: the group becomes a classic one, or it gives anew."""
    async with run_group(policy) as (rig, clock, new, old):
        who = await join_as_classic(old)
        old.send(SYNC, 2, **who, assignments=())
        await wait_until_parked(rig)
        clock.advance(1)
        assert (await old.read(SYNC, 2))[1].error_code == 0
        clock.advance(3)
        old.send(HEARTBEAT, 2, **who)
        await wait_until_parked(rig)
        gone = {"group_id": "g", "member_id": "m1", "member_epoch": -1}
        left = await new.ask(CONSUMER_HEARTBEAT, 1, **{**consumer_join("g", "m1", ("t",)), **gone})
        assert left.error_code == 0
        assert (await old.read(HEARTBEAT, 2))[1].error_code == 27


async def test_a_classic_member_that_has_nothing_yet_hears_at_once_that_it_is_free() -> None:
    """Otherwise it would learn that from its first heartbeat, 3 s later."""
    async with run_group("bidirectional") as (rig, _, new, old):
        who = await join_as_classic(old)
        old.send(SYNC, 2, **who, assignments=())
        await wait_until_parked(rig)
        told = await new.ask(CONSUMER_HEARTBEAT, 1, **consumer_beat("g", "m1", 2))
        [kept] = told.assignment.topic_partitions
        assert len(kept.partitions) == 1
        owned = request_schema(CONSUMER_HEARTBEAT, 1).TopicPartitions(
            topic_id=kept.topic_id, partitions=kept.partitions
        )
        done = consumer_beat("g", "m1", 2) | {"topic_partitions": (owned,)}
        assert (await new.ask(CONSUMER_HEARTBEAT, 1, **done)).error_code == 0
        assert (await old.read(SYNC, 2))[1].error_code == 27
        protocol = request_schema(JOIN, 3).JoinGroupRequestProtocol
        again = join_fields(3, "g", who["member_id"])
        again |= {"protocols": (protocol(name="range", metadata=SUBSCRIPTION),)}
        joined = await old.ask(JOIN, 3, **again)
        who |= {"generation_id": joined.generation_id}
        synced = await old.ask(SYNC, 2, **who, assignments=())
        [free] = embedded.decode_assignment(synced.assignment).partitions
        assert len(free.partitions) == 1
