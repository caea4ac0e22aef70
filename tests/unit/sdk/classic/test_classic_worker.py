"""Groups of any protocol type: single-writer election, tasks of workers, failures of leaders."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

import muster
from muster.classic.classic_worker_protocol import WorkerProtocol
from muster.v1 import classic_pb2
from tests.support.service.stand import Stand
from tests.support.waiting import until
from tests.unit.sdk.classic.classic_stand import classic_stand


@pytest.fixture
async def stand() -> AsyncIterator[Stand]:
    async with classic_stand() as running:
        yield running


def elect_leader(generation: muster.Generation) -> Mapping[str, bytes]:
    """Whoever leads writes."""
    return {generation.leader: b"write"}


def make_writer(stand: Stand, **options: Any) -> muster.ClassicWorker:
    defaults: dict[str, Any] = {
        "protocol_type": "writer",
        "protocols": {"elect": b""},
        "assign": elect_leader,
        "heartbeat_interval_ms": 30,
        "session_timeout_ms": 10_000,
    }
    return muster.ClassicWorker(stand.target, "writers", **(defaults | options))


def writers(*members: muster.ClassicWorker) -> list[muster.ClassicWorker]:
    return [member for member in members if member.assignment == b"write"]


async def test_one_writes_and_another_takes_over(stand: Stand) -> None:
    events: list[tuple[str, bytes]] = []
    one = make_writer(
        stand,
        on_assignment=lambda what, generation: events.append(("assigned", what)),
        on_revoked=lambda what: events.append(("revoked", what)),
    )
    async with one:
        await until(lambda: events == [("assigned", b"write")])
        async with make_writer(stand) as two, make_writer(stand) as three:
            await until(lambda: one.generation == two.generation == three.generation)
            assert one.assignment == b"write", "the leader stays, and so does the writer"
            assert writers(one, two, three) == [one]
            await one.close()
            await until(lambda: len(writers(two, three)) == 1)
            assert writers(two, three)[0].is_leader
    assert ("revoked", b"write") in events
    assert one.assignment is None


async def test_members_say_what_they_are_and_get_what_the_leader_makes_of_it(stand: Stand) -> None:
    """Metadata-based: tasks go to workers by what each says it can do."""

    async def assign(generation: muster.Generation) -> Mapping[str, bytes]:
        await asyncio.sleep(0)
        assert generation.protocol_name == "by-skill"
        skills = {each.member_id: json.loads(each.metadata) for each in generation.members}
        return {who: json.dumps([f"task-{s}" for s in can]).encode() for who, can in skills.items()}

    can_do = {"one": ["x"], "two": ["y", "z"]}

    def make(name: str) -> muster.ClassicWorker:
        return make_writer(
            stand,
            protocol_type="connect",
            protocols={"by-skill": lambda: json.dumps(can_do[name]).encode(), "old": b""},
            assign=assign,
            keeps=True,
            client_id=name,
        )

    async with make("one") as one, make("two") as two:
        await until(lambda: one.assignment == b'["task-x"]')
        await until(lambda: two.assignment == b'["task-y", "task-z"]')
        can_do["one"] = ["x", "w"]
        one.rejoin("it has learned something")
        await until(lambda: one.assignment == b'["task-x", "task-w"]')
        assert two.assignment == b'["task-y", "task-z"]'


async def test_a_leader_that_cannot_assign_tells_all_and_the_group_goes_on(
    stand: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    cannot = asyncio.Event()

    def assign(generation: muster.Generation) -> Mapping[str, bytes]:
        if len(generation.members) > 1 and not cannot.is_set():
            raise muster.AssignmentFailed("they do not agree", code=23)
        return elect_leader(generation)

    async with make_writer(stand, assign=assign) as one:
        two = make_writer(stand, assign=assign)
        joining = asyncio.create_task(two.join())
        await until(lambda: caplog.text.count("they do not agree") >= 2)
        assert "INCONSISTENT_GROUP_PROTOCOL" in caplog.text
        cannot.set()
        await joining
        await until(lambda: len(writers(one, two)) == 1 and one.generation == two.generation)
        await two.close()


async def test_an_assignment_that_raises_is_a_failure_too(stand: Stand) -> None:
    raises = [ValueError("no idea")]

    def assign(generation: muster.Generation) -> Mapping[str, bytes]:
        if raises:
            raise raises.pop()
        return elect_leader(generation)

    member = make_writer(stand, assign=assign)
    await member.join()
    await until(lambda: writers(member) == [member])
    with pytest.raises(muster.CallbackFailed, match="no idea"):
        member.poll()
    assert member.poll() == b"write"
    assert member.generation == 2
    await member.close()


async def test_a_worker_shares_a_group_with_another_client(stand: Stand) -> None:
    """The other one makes its calls itself, and is told what an SDK's leader assigns."""
    async with make_writer(stand, assign=lambda g: {each.member_id: b"x" for each in g.members}):
        stub = stand.classic_stub()
        request = classic_pb2.JoinGroupRequest(
            group_id="writers",
            session_timeout_ms=10_000,
            protocol_type="writer",
            protocols=[classic_pb2.GroupProtocol(name="elect")],
        )
        request.member_id = (await stub.JoinGroup(request)).member_id
        joined = await stub.JoinGroup(request)
        assert joined.leader != joined.member_id
        synced = await stub.SyncGroup(
            classic_pb2.SyncGroupRequest(
                group_id="writers",
                member_id=joined.member_id,
                generation=joined.generation,
                protocol_type="writer",
                protocol_name="elect",
            )
        )
        assert synced.assignment == b"x"


async def test_offsets_are_committed_as_a_member_of_the_generation(stand: Stand) -> None:
    async with make_writer(stand) as member:
        await until(lambda: writers(member) == [member])
        await member.commit({muster.TopicPartition("orders", 1): 9})
        await member.close()
        with pytest.raises(muster.MemberLost):
            await member.commit({muster.TopicPartition("orders", 1): 10})


async def test_a_writer_that_expires_stops_before_another_writes(stand: Stand) -> None:
    lost: list[bytes] = []
    # Longer than a machine stands still: who is out here does not come back.
    options = {"session_timeout_ms": 3_000, "heartbeat_interval_ms": 40}
    async with make_writer(stand, on_lost=lost.append, rejoin=False, **options) as one:
        await until(lambda: writers(one) == [one])
        async with make_writer(stand, **options) as two:
            assert one._engine is not None
            assert one._engine._heartbeats.task is not None
            # It falls silent: nothing is sent, nothing is heard.
            one._engine._heartbeats.task.cancel()
            await until(lambda: writers(one, two) == [two])
            assert one.assignment is None


async def test_what_comes_after_the_session_is_nobodys() -> None:
    """The sync was answered, but so late that another member may have been assigned the same."""
    assigned: list[bytes] = []
    protocol = WorkerProtocol(
        "writer",
        {"elect": b""},
        elect_leader,
        lambda what, generation: assigned.append(what),
        None,
        None,
        keeps=False,
    )
    generation = muster.Generation(3, "m", "m", "elect")
    assert not await protocol.take(generation, b"write", lambda: False)
    assert (assigned, protocol.held) == ([], None)
    assert not await protocol.take(generation, b"write", lambda: True)
    assert (assigned, protocol.held) == ([b"write"], b"write")
