"""The end of a phase of a large classic group: decided at once, answered in slices."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from coordinator.core.replay.group_records import replay
from coordinator.runtime.commands import waiting_members
from model.commands.classic import JoinGroup, JoinProtocol, SyncGroup
from model.commands.consumer import LeaveGroup, LeavingMember
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import ErrorCode, GroupError, UnknownMemberId
from model.ids import GroupId, MemberId
from model.log.records import ClassicGroupMember, GroupMetadataKey, GroupMetadataValue, Record
from model.responses.classic import JoinGroupResponse, SyncGroupResponse
from tests.support.virtual.server import CALLER, Pending, VirtualServer

G = GroupId("g")
SLICE = 3
MEMBERS = [MemberId(f"m{number}") for number in range(4 * SLICE - 1)]
LAST = MEMBERS[-1]


@pytest.fixture(autouse=True)
def _small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_members, "SLICE", SLICE)


def join(member: MemberId, said: bytes = b"said") -> JoinGroup:
    return JoinGroup(
        CALLER, G, member, member, 45_000, 60_000, "connect", (JoinProtocol("p", said),)
    )


def sync(member: MemberId, generation: int = 1) -> SyncGroup:
    return SyncGroup(CALLER, G, member, generation, ())


def make_server() -> VirtualServer:
    return VirtualServer(settings=CoordinatorSettings(group_initial_rebalance_delay_ms=3_000))


def begin_joins(server: VirtualServer) -> list[Pending]:
    """All members have joined; none is answered yet."""
    new = (replace(join(own), member_id=None, requires_member_id=False) for own in MEMBERS)
    pending = [server.submit(each) for each in new]
    server.settle()
    assert count_answered(pending) == 0
    return pending


def count_answered(pending: Sequence[Pending]) -> int:
    return sum(each.is_answered for each in pending)


def tell_some(server: VirtualServer) -> list[Pending]:
    """The join phase has ended, and the first slice of responses is sent."""
    pending = begin_joins(server)
    server.step_until(lambda: count_answered(pending) > 0)
    assert count_answered(pending) == SLICE
    assert not pending[-1].is_answered
    return pending


def check_joined(pending: Sequence[Pending]) -> None:
    """Each member gets one response, and all get the same generation."""
    answers: list[Any] = [each.answer for each in pending]
    assert all(isinstance(answer, JoinGroupResponse) for answer in answers), answers
    assert [answer.member_id for answer in answers] == MEMBERS
    assert {answer.generation for answer in answers} == {1}


def test_the_end_of_a_join_phase_is_told_in_slices() -> None:
    server = make_server()
    pending = begin_joins(server)
    counts = [0]
    while counts[-1] < len(pending):
        server.scheduler.step()
        counts.append(count_answered(pending))
    steps = [after - before for before, after in pairwise(counts)]
    assert max(steps) == SLICE
    check_joined(pending)
    assert len(server.runtime.parts.waiting) == 0


def test_the_leader_is_told_first() -> None:
    """The others wait for what it does next."""
    server = make_server()
    members = tuple(
        ClassicGroupMember(own, None, "c", "/127.0.0.1", 60_000, 45_000, b"said", b"")
        for own in MEMBERS
    )
    value = GroupMetadataValue("connect", 5, "p", LAST, 0, members)
    replay(server.runtime._shard_of(G), Record(GroupMetadataKey(G), value))
    pending = [server.submit(join(own, b"otherwise")) for own in MEMBERS]
    server.step_until(lambda: count_answered(pending) > 0)
    told_first = [own for own, each in zip(MEMBERS, pending, strict=True) if each.is_answered]
    assert told_first == [*MEMBERS[: SLICE - 1], LAST]
    told = pending[-1].answer
    assert isinstance(told, JoinGroupResponse)
    assert (told.leader, len(told.members)) == (LAST, len(MEMBERS))


def test_who_joins_again_before_it_is_told_is_told_of_both() -> None:
    """The response to its first request is decided; the second belongs to another rebalance."""
    server = make_server()
    pending = tell_some(server)
    again = server.submit(join(LAST, b"otherwise"))
    server.settle()
    check_joined(pending)
    assert not again.is_answered
    others = [server.submit(join(own)) for own in MEMBERS[:-1]]
    server.settle()
    generations = [each.answer.generation for each in (again, *others)]  # type: ignore[union-attr]
    assert generations == [2] * len(MEMBERS)


def test_who_leaves_before_it_is_told_is_told_and_none_any_more() -> None:
    server = make_server()
    pending = tell_some(server)
    server.submit(LeaveGroup(CALLER, G, (LeavingMember(LAST),)))
    server.settle()
    check_joined(pending)
    with pytest.raises(UnknownMemberId):
        raise _error(server.ask(sync(LAST)))


def _error(answer: Any) -> GroupError:
    assert isinstance(answer, GroupError), answer
    return answer


async def test_a_stop_tells_all_that_is_decided() -> None:
    """Each request gets the one response that was decided; none is lost with the slices."""
    server = make_server()
    pending = tell_some(server)
    late = server.submit(join(LAST, b"otherwise"))
    stopping = asyncio.ensure_future(server.runtime.stop())
    await asyncio.sleep(0)
    assert not stopping.done()
    server.settle()
    await stopping
    check_joined(pending)
    assert _error(late.answer).code is ErrorCode.NOT_COORDINATOR


def test_one_that_cannot_be_told_is_in_nobodys_way() -> None:
    server = make_server()
    pending = begin_joins(server)

    def fail(answer: object) -> None:
        raise ConnectionError("the client has gone")

    waiting = server.runtime.parts.waiting._waiting
    gone = list(waiting)[1::2]
    waiting.update(dict.fromkeys(gone, fail))
    server.step_until(lambda: count_answered(pending) > 0)
    server.settle()
    assert count_answered(pending) == len(MEMBERS) - len(gone)
    assert not server.runtime.parts.waiting.is_busy


def test_a_failed_slice_keeps_nobody_from_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    server = make_server()
    pending = begin_joins(server)
    room = server.runtime.parts.waiting
    give, failures = room._answer, iter([False, True, False, True])

    def fail_at_times(groups: tuple[GroupId, ...], reply: Any, answer: Any) -> None:
        if not groups and next(failures, False):
            raise RuntimeError("a bug")
        give(groups, reply, answer)

    monkeypatch.setattr(room, "_answer", fail_at_times)
    server.step_until(lambda: count_answered(pending) > 0)
    server.settle()
    assert count_answered(pending) == len(pending) - 2


def make_generation(server: VirtualServer) -> list[Pending]:
    """All members but the leader wait for their assignments."""
    tell_some(server)
    server.settle()
    pending = [server.submit(sync(own)) for own in MEMBERS[1:]]
    server.settle()
    assert count_answered(pending) == 0
    return pending


def test_assignments_are_told_in_slices_once_they_are_durable() -> None:
    server = make_server()
    pending = make_generation(server)
    leader = server.submit(sync(MEMBERS[0]))
    everybody = [leader, *pending]
    counts = [0]
    while counts[-1] < len(everybody):
        server.scheduler.step()
        counts.append(count_answered(everybody))
        if counts[-1]:
            assert G not in server.runtime.parts.durability.groups
            assert leader.is_answered
    steps = [after - before for before, after in pairwise(counts)]
    assert max(steps) == SLICE
    assert all(isinstance(each.answer, SyncGroupResponse) for each in everybody)


def test_a_rebalance_before_all_are_told_their_assignments() -> None:
    """They get the generation's assignment, and learn of the rebalance by heartbeat."""
    server = make_server()
    pending = make_generation(server)
    leader = server.submit(sync(MEMBERS[0]))
    server.step_until(lambda: leader.is_answered)
    assert not pending[-1].is_answered
    again = server.submit(join(MEMBERS[1], b"otherwise"))
    server.settle()
    assert all(isinstance(each.answer, SyncGroupResponse) for each in pending)
    assert not again.is_answered
