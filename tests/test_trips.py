"""Three requests go the way that docs/ARCHITECTURE.md tells, station by station."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple

import pytest

from gateway.codec.kio_schema import request_schema
from model.configs.coordinator_settings import CoordinatorSettings
from muster.assignors import embedded
from tests.support.gateway.wire_rig import HEARTBEAT, run_rig
from tests.support.gateway.wire_steps import (
    COMMIT,
    JOIN,
    SYNC,
    UNPARKED,
    commit_topics,
    join_fields,
)
from tests.support.wire.connection import Connection
from tests.support.wire.fields import join

CHECKOUT: Final = Path(__file__).parents[1]
STATIONS_MAX: Final = 15
RUNTIME: Final = "coordinator/runtime/runtime.py"
RUNTIME_ENTERED_MAX: Final = 3
ASSIGNED: Final = embedded.Assignment((embedded.TopicPartitions("t", (0, 1)),))
SUBSCRIPTION: Final = embedded.encode_subscription(embedded.make_subscription(["t"]))

_STATION = re.compile(r"^\d+\. `([\w/]+\.py)`, `([\w.]+)`", re.MULTILINE)


class Call(NamedTuple):
    """A function of the server that was called, and the module that called it."""

    path: str
    name: str
    caller: str


def read_stations(title: str) -> list[tuple[str, str]]:
    """(module, function) of a trip."""
    text = (CHECKOUT / "docs" / "ARCHITECTURE.md").read_text()
    section = text.partition(f"\n### {title}\n")[2].partition("\n##")[0]
    return _STATION.findall(section)


@contextmanager
def traced() -> Iterator[list[Call]]:
    """The calls on this thread, of generators each time that they go on."""
    calls: list[Call] = []

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            caller = _place_of(frame.f_back) if frame.f_back is not None else ""
            calls.append(Call(_place_of(frame), frame.f_code.co_qualname, caller))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(before)


def _place_of(frame: FrameType) -> str:
    path = Path(frame.f_code.co_filename)
    return path.relative_to(CHECKOUT).as_posix() if path.is_relative_to(CHECKOUT) else path.name


def check_trip(title: str, calls: list[Call]) -> None:
    """All stations were passed, in their order."""
    stations = read_stations(title)
    assert 5 < len(stations) <= STATIONS_MAX
    left = iter(calls)
    for path, name in stations:
        assert any((call.path, call.name) == (path, name) for call in left), f"{path}, {name}"
    entered = [call for call in calls if call.path == RUNTIME != call.caller]
    assert len(entered) <= RUNTIME_ENTERED_MAX, entered


async def test_a_heartbeat_that_joins() -> None:
    async with run_rig(UNPARKED) as rig, await rig.connect() as client:
        await rig.create_topic("t", 2)
        with traced() as calls:
            joined = await client.ask(HEARTBEAT, 1, **join("g", "m1", ("t",)))
        assert joined.error_code == 0
        assert joined.assignment.topic_partitions[0].partitions == (0, 1)
        check_trip("A heartbeat that joins", calls)


async def join_classic(client: Connection, member_id: str = "") -> Any:
    protocol = request_schema(JOIN, 9).JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)
    fields = {**join_fields(9, "g", member_id), "protocols": (protocol,)}
    return await client.ask(JOIN, 9, **fields)


async def test_a_join_group_on_an_upgraded_group() -> None:
    at_once = CoordinatorSettings(group_initial_rebalance_delay_ms=0)
    async with (
        run_rig(UNPARKED, at_once) as rig,
        await rig.connect() as old,
        await rig.connect() as new,
    ):
        await rig.create_topic("t", 2)
        member_id = (await join_classic(old)).member_id
        joined = await join_classic(old, member_id)
        assert joined.error_code == 0
        assignment = request_schema(SYNC, 5).SyncGroupRequestAssignment(
            member_id=member_id,
            assignment=embedded.encode_assignment(ASSIGNED),
        )
        synced = await old.ask(
            SYNC,
            5,
            group_id="g",
            member_id=member_id,
            generation_id=joined.generation_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=(assignment,),
        )
        assert synced.error_code == 0
        upgraded = await new.ask(HEARTBEAT, 1, **join("g", "m1", ("t",)))
        assert upgraded.error_code == 0
        member_id = (await join_classic(old)).member_id
        with traced() as calls:
            joined = await join_classic(old, member_id)
        assert joined.error_code == 0
        check_trip("A JoinGroup on an upgraded group", calls)


@pytest.mark.parametrize("repeats", [1, 3])
async def test_a_commit_that_repeats(repeats: int) -> None:
    async with run_rig(UNPARKED) as rig, await rig.connect() as client:
        await rig.create_topic("t", 2)

        async def commit(offset: int) -> None:
            answer = await client.ask(
                COMMIT,
                9,
                group_id="s",
                generation_id_or_member_epoch=-1,
                member_id="",
                group_instance_id=None,
                topics=commit_topics(9, "t", {0: (offset, "")}),
            )
            assert answer.topics[0].partitions[0].error_code == 0

        for offset in range(repeats):
            await commit(offset)
        with traced() as calls:
            await commit(repeats)
        check_trip("A commit that repeats", calls)
