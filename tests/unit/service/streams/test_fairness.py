"""What one session may do in a turn of the loop, and what all may make the server hold."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

import grpc.aio

from coordinator.service.session.session import Session
from coordinator.service.settings import GrpcSettings
from coordinator.service.streams.backlog import Backlog
from coordinator.service.streams.outbox import Outbox
from coordinator.service.streams.session_turns import ACTION_BYTES, ACTIONS, FIRST_ACTIONS, Turns
from muster.v1 import group_pb2
from tests.support.service.session_client import SessionClient, commit, leave
from tests.support.service.stand import Stand, running_stand
from tests.support.waiting import until
from tests.unit.service.streams.test_outbox import drain, update


class Calls:
    """What is to be called in a later turn."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def __call__(self, callback: Callable[[], None]) -> None:
        self.waiting.append(callback)

    def turn(self) -> None:
        waiting, self.waiting = self.waiting, []
        for callback in waiting:
            callback()


async def test_sessions_have_their_turns_one_after_another() -> None:
    turns = Turns()
    taken: list[int] = []

    async def work(number: int) -> None:
        for _ in range(3):
            await turns.take()
            taken.append(number)

    tasks = [asyncio.create_task(work(number)) for number in range(3)]
    passed = 0
    while not all(task.done() for task in tasks):
        before = len(taken)
        await asyncio.sleep(0)
        passed += 1
        assert len(taken) - before <= 1, "one in a turn of the loop"
        assert passed < 100
    assert taken == [0, 1, 2] * 3


async def test_who_is_gone_has_no_turn() -> None:
    turns = Turns()
    gone, other = (asyncio.create_task(turns.take()) for _ in range(2))
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.wait_for(other, 30)


async def test_a_message_of_many_actions_is_handled_in_slices(stand: Stand) -> None:
    client = SessionClient(stand.group_stub())
    await client.join("m1")
    (session,) = stand.server._services.sessions._sessions
    assert isinstance(session, Session)
    actions = [leave(f"m{number}") for number in range(1_000)]
    slices = sum(1 for _ in session.receive(group_pb2.SessionRequest(actions=actions)))
    assert slices == -(-(1_000 - FIRST_ACTIONS) // ACTIONS)
    assert sum(1 for _ in session.receive(group_pb2.SessionRequest(actions=actions[:5]))) == 0


async def test_a_large_action_counts_as_many(stand: Stand) -> None:
    """What commits of thousands of partitions take is no matter of how many there are."""
    client = SessionClient(stand.group_stub())
    joined = await client.join("m1")
    (session,) = stand.server._services.sessions._sessions
    assert isinstance(session, Session)
    large = commit("m1", joined.member_epoch, dict.fromkeys(range(1_000), 1))
    assert large.ByteSize() > FIRST_ACTIONS * ACTION_BYTES
    slices = sum(1 for _ in session.receive(group_pb2.SessionRequest(actions=[large] * 5)))
    assert slices == 4


def test_the_outbox_counts_what_waits() -> None:
    backlog = Backlog(1_000_000, Calls())
    share = backlog.open(lambda: None)
    outbox = Outbox(share)
    sizes = [update(number, 100).ByteSize() for number in range(3_000)]
    for number in range(3_000):
        outbox.add(update(number, 100))
    assert backlog.total == share.held == sum(sizes)
    assert outbox.next_message() is not None
    assert backlog.total == share.held == sum(sizes[1_000:])
    drain(outbox)
    assert backlog.total == 0
    outbox.add(update(1))
    outbox.clear()
    assert backlog.total == 0


def test_the_session_that_holds_the_most_is_ended() -> None:
    calls, ended = Calls(), list[int]()
    backlog = Backlog(1_000, calls)
    shares = [backlog.open(lambda number=number: ended.append(number)) for number in range(3)]  # type: ignore[misc]
    for share, size in zip(shares, (300, 500, 200), strict=True):
        share.add(size)
    calls.turn()
    assert ended == []
    shares[2].add(1)
    calls.turn()
    assert ended == [1]
    assert backlog.total == 501
    shares[1].add(-400)
    shares[1].close()
    assert backlog.total == 501, "what it had is not counted any more"
    calls.turn()
    assert ended == [1]


async def test_a_session_that_reads_nothing_is_ended_for_the_others() -> None:
    settings = GrpcSettings(grpc_stream_total_bytes=200_000, grpc_stream_pending_max=100_000)
    async with running_stand(grpc_settings=settings) as small:
        greedy, modest = (SessionClient(small.group_stub()) for _ in range(2))
        await greedy.join("m1")
        await modest.join("m2", group_id="other")
        action = commit("m1", 2, {0: 1}, topic="x" * 249)
        sessions = small.server._services.sessions._sessions
        assert len(sessions) == 2

        async def flood() -> None:
            while True:
                await greedy.send(*([action] * 200))

        task = asyncio.create_task(flood())
        await until(lambda: len(sessions) == 1)
        # The status comes behind what was written before.
        with contextlib.suppress(grpc.aio.AioRpcError):
            while await greedy.call.read() is not grpc.aio.EOF:
                pass
        await asyncio.gather(task, return_exceptions=True)
        assert greedy.call.done()
        await modest.send(leave("m2", group_id="other"))
        await modest.expect("left", "m2")
        assert len(sessions) == 1
