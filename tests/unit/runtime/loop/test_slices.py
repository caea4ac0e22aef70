"""Long reads: how much of them one iteration does, and which state they show."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import NoReturn, TypeVar

import pytest

from coordinator.runtime.commands import group_reads
from coordinator.runtime.loop.slices import (
    TURN_MS,
    Paced,
    Slices,
    Steps,
    compute_elsewhere,
    run_at_once,
    spend,
)
from coordinator.runtime.offsets import offset_reads
from coordinator.runtime.offsets.offset_reads import read_highest_offsets
from model.commands.command import Command
from model.commands.groups import ConsumerGroupDescribe, DeleteGroup, ListGroups
from model.commands.offsets import DeleteOffsets, OffsetFetch, TopicToFetch
from model.errors import ErrorCode, GroupError
from model.ids import GroupId, TopicId, TopicName
from model.responses.groups import ConsumerGroupDescribeResponse, ListGroupsResponse
from model.responses.offsets import OffsetFetchResponse
from tests.support.virtual.server import CALLER, Pending, VirtualServer

T = TypeVar("T")

SLICE = 4
GROUP = "g"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> VirtualServer:
    monkeypatch.setattr(group_reads, "SLICE", SLICE)
    monkeypatch.setattr(offset_reads, "SLICE", SLICE)
    return VirtualServer({"foo": 40, "bar": 40})


def count_turns(server: VirtualServer, pending: Pending) -> int:
    """The number of iterations until the response is sent."""
    turns = 0
    while not pending.is_answered:
        assert server.scheduler.step(), "nothing is to come, and there is no answer"
        turns += 1
    return turns


def commit(server: VirtualServer, topic: str, offsets: dict[int, int], group: str = GROUP) -> None:
    server.ask(server.commit_command(group, "", None, topic, offsets))


def make_fetch(*topics: TopicToFetch) -> OffsetFetch:
    return OffsetFetch(CALLER, GroupId(GROUP), topics or None)


def name(topic: str, *partitions: int) -> TopicToFetch:
    return TopicToFetch(TopicName(topic), None, partitions)


def offsets_of(pending: Pending) -> dict[str | None, list[tuple[int, int]]]:
    answer = pending.answer
    assert isinstance(answer, OffsetFetchResponse), repr(answer)
    return {
        topic.name: [(row.partition, row.offset) for row in topic.partitions]
        for topic in answer.topics
    }


# ------------------------------------------------------------------------------------- slices


class Loop:
    """A loop that the test iterates."""

    def __init__(self) -> None:
        self.ready: deque[Callable[[], None]] = deque()
        self.resting: deque[tuple[int, Callable[[], None]]] = deque()
        self.done: list[str] = []
        self.now_ms = 0.0
        self.takes_ms = 0.0
        """Each slice."""
        self.slices = Slices(self.ready.append, self._rest, lambda: self.now_ms)

    def run(self, steps: Paced[None]) -> None:
        self.slices.run(steps, lambda bug: self.done.append(str(bug)))

    def work(self, name: str, slices: int) -> Steps[None]:
        for number in range(slices):
            self.done.append(f"{name}{number}")
            self.now_ms += self.takes_ms
            if number < slices - 1:
                yield

    def _rest(self, ms: int, callback: Callable[[], None]) -> None:
        self.resting.append((ms, callback))

    def wake(self) -> tuple[int, list[str]]:
        """Wake the paused work; returns how long it paused and what it does then."""
        self.done.clear()
        ms, callback = self.resting.popleft()
        callback()
        return ms, list(self.done)

    def turn(self) -> list[str]:
        """Run one iteration; returns what it does."""
        self.done.clear()
        self.ready.popleft()()
        return list(self.done)


def test_one_slice_of_all_work_in_a_turn() -> None:
    loop = Loop()
    loop.run(loop.work("a", 3))
    loop.run(loop.work("b", 2))
    assert loop.done == ["a0"]
    assert [loop.turn() for _ in range(3)] == [["a1"], ["b0"], ["a2", "b1"]]
    assert not loop.ready
    assert not loop.slices.is_busy


def test_what_takes_less_than_a_slice_waits_for_one_turn_at_most() -> None:
    loop = Loop()
    loop.run(loop.work("a", 3))
    for short in "bcd":
        loop.run(loop.work(short, 1))
    assert [loop.turn() for _ in range(2)] == [["a1"], ["b0", "c0", "d0", "a2"]]


def test_what_takes_less_than_a_slice_is_done_for_a_few_milliseconds_of_a_turn() -> None:
    """Bug: the last slices of all waiting work ran in one iteration, however many they were."""
    loop = Loop()
    loop.takes_ms = TURN_MS / 2
    loop.run(loop.work("a", 2))
    for number in range(10):
        loop.run(loop.work(f"b{number}-", 1))
    turns = []
    while loop.ready:
        turns.append(loop.turn())
    assert max(map(len, turns)) == 2
    assert sum(map(len, turns)) == 11


def test_work_that_work_begins_waits() -> None:
    loop = Loop()

    def begin() -> Steps[None]:
        loop.run(loop.work("b", 1))
        loop.done.append("a")
        yield from ()

    loop.run(begin())
    assert loop.done == ["a"]
    assert loop.turn() == ["b0"]


def test_work_that_fails_ends_alone() -> None:
    loop = Loop()

    def fail() -> Steps[None]:
        yield
        raise ValueError("a bug")

    loop.run(fail())
    loop.run(loop.work("a", 2))
    assert [loop.turn() for _ in range(2)] == [["a bug", "a0"], ["a1"]]
    assert not loop.slices.is_busy


def test_whoever_began_the_work_is_told_that_it_failed() -> None:
    loop = Loop()

    def fail() -> Steps[None]:
        raise ValueError("a bug in the first slice")
        yield

    def tell(bug: Exception) -> None:
        loop.done.append(str(bug))
        raise ValueError("a bug of whoever is told")

    loop.slices.run(fail(), tell)
    assert loop.done == ["a bug in the first slice"]
    loop.run(loop.work("a", 1))
    assert loop.done[1:] == ["a0"]


def test_what_fails_and_nobody_is_told_of_is_raised_and_others_go_on() -> None:
    loop = Loop()

    def fail() -> Steps[None]:
        yield
        raise ValueError("a bug")

    loop.slices.run(fail())
    loop.run(loop.work("a", 2))
    with pytest.raises(ValueError, match="a bug"):
        loop.turn()
    assert [loop.turn() for _ in range(2)] == [["a0"], ["a1"]]
    assert not loop.ready


def test_work_that_rests_holds_up_no_other() -> None:
    loop = Loop()

    def rest() -> Paced[None]:
        yield 5
        loop.done.append("rested")

    loop.run(rest())
    assert not loop.slices.is_busy
    loop.run(loop.work("a", 3))
    assert loop.turn() == ["a1"]
    assert loop.wake() == (5, [])
    assert loop.turn() == ["a2", "rested"]


def test_work_that_rests_takes_no_iteration_of_others() -> None:
    """Bug: of 5,000 works that did little and rested, one began in an iteration."""
    loop = Loop()

    def rest(name: str) -> Paced[None]:
        loop.done.append(name)
        yield 5

    loop.run(loop.work("a", 3))
    for number in range(5):
        loop.run(rest(f"b{number}"))
    assert [loop.turn() for _ in range(2)] == [["a1"], ["b0", "b1", "b2", "b3", "b4", "a2"]]


def test_work_that_has_rested_goes_on_at_once_where_no_other_does() -> None:
    loop = Loop()

    def rest() -> Paced[None]:
        yield 5
        loop.done.append("rested")

    loop.run(rest())
    assert loop.wake() == (5, ["rested"])
    assert not loop.ready


def test_work_waits_for_what_is_computed_elsewhere() -> None:
    loop = Loop()
    lane: list[Callable[[], None]] = []

    def run(work: Callable[[], T], done: Callable[[T | BaseException], None]) -> None:
        lane.append(lambda: done(work()))

    def count() -> Paced[None]:
        found = yield from compute_elsewhere(run, lambda: 3)
        loop.done.append(f"found {found}")

    loop.run(count())
    assert (loop.done, loop.ready) == ([], deque())
    lane.pop()()
    assert loop.done == ["found 3"]


def test_what_was_stopped_does_nothing_more() -> None:
    loop = Loop()
    closed: list[str] = []

    def work(name: str, pause_ms: int) -> Paced[None]:
        try:
            while True:
                yield pause_ms
                loop.done.append(name)
        finally:
            closed.append(name)

    loop.run(work("rests", 5))
    loop.run(work("waits", 0))
    loop.slices.stop()
    assert closed == ["waits"], "what it holds open is closed at once"
    assert loop.turn() == []
    assert loop.wake() == (5, [])
    loop.run(loop.work("comes", 1))
    loop.slices.go_on(loop.work("comes", 1))
    assert loop.done == []
    assert not loop.ready
    assert not loop.slices.is_busy


def test_a_walk_goes_on_until_its_budget_is_spent() -> None:
    walk = iter([1, 2, 3, 1])
    assert [spend(walk, 3), next(walk), spend(walk, 3)] == [True, 3, False]
    assert not spend(walk, 3)


def test_run_at_once_is_all_slices() -> None:
    def count() -> Steps[int]:
        yield
        yield
        return 3

    assert run_at_once(count()) == 3


# ------------------------------------------------------------------------------- descriptions


def test_a_large_group_is_described_in_slices_and_others_are_served_between(
    server: VirtualServer,
) -> None:
    for number in range(5 * SLICE):
        server.join(GROUP, f"m{number:02d}", ["foo"])
    described = server.submit(ConsumerGroupDescribe(CALLER, (GroupId(GROUP),)))
    fetch = server.submit(server.fetch_command(GROUP, "foo", [0]))
    assert count_turns(server, fetch) <= 2
    assert not described.is_answered
    assert count_turns(server, described) >= 3
    answer = described.answer
    assert isinstance(answer, ConsumerGroupDescribeResponse)
    names = [member.member_id for member in answer.groups[0].members]
    assert names == [f"m{number:02d}" for number in range(5 * SLICE)]


def test_a_member_with_very_many_topics_is_described_in_turns_of_its_own(
    server: VirtualServer,
) -> None:
    for number in range(4):
        server.join(GROUP, f"m{number}", [f"t{topic}" for topic in range(32 * SLICE)])
    described = server.submit(ConsumerGroupDescribe(CALLER, (GroupId(GROUP),)))
    assert count_turns(server, described) >= 4


def test_a_description_shows_the_group_as_it_was_at_one_time(
    server: VirtualServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3 * SLICE):
        server.join(GROUP, f"m{number:02d}", ["foo"])
    command = ConsumerGroupDescribe(CALLER, (GroupId(GROUP),))
    before = server.submit(command)
    for number in range(0, 3 * SLICE, 2):
        server.leave(GROUP, f"m{number:02d}")
    monkeypatch.setattr(group_reads, "SLICE", 1_000)
    changed = server.ask(command)
    answer = before.answer
    assert isinstance(answer, ConsumerGroupDescribeResponse)
    (group,) = answer.groups
    assert len(group.members) == 3 * SLICE
    held = [p for m in group.members for topic in m.target_assignment for p in topic.partitions]
    assert sorted(held) == list(range(40))
    assert changed != answer


def test_many_groups_are_described_in_slices(server: VirtualServer) -> None:
    groups = tuple(GroupId(f"nobody{number}") for number in range(5 * SLICE))
    described = server.submit(ConsumerGroupDescribe(CALLER, groups))
    assert count_turns(server, described) >= 4
    answer = described.answer
    assert isinstance(answer, ConsumerGroupDescribeResponse)
    assert [group.group_id for group in answer.groups] == list(groups)


def test_many_groups_are_listed_in_slices(server: VirtualServer) -> None:
    names = {f"g{number}" for number in range(10 * SLICE)}
    for group in names:
        commit(server, "foo", {0: 1}, group)
    listed = server.submit(ListGroups(CALLER))
    assert count_turns(server, listed) >= 2
    answer = listed.answer
    assert isinstance(answer, ListGroupsResponse)
    assert {group.group_id for group in answer.groups} == names


def test_a_server_that_stops_answers_what_it_has_begun(server: VirtualServer) -> None:
    for number in range(3 * SLICE):
        server.join(GROUP, f"m{number:02d}", ["foo"])
    described = server.submit(ConsumerGroupDescribe(CALLER, (GroupId(GROUP),)))
    assert server.runtime.parts.is_busy
    count_turns(server, described)
    assert not server.runtime.parts.is_busy


# ------------------------------------------------------------------------------------ offsets


def test_all_offsets_are_read_in_slices_and_others_are_served_between(
    server: VirtualServer,
) -> None:
    offsets = {number: 100 + number for number in range(40)}
    commit(server, "foo", offsets)
    fetched = server.submit(make_fetch())
    one = server.submit(server.fetch_command(GROUP, "foo", [0]))
    assert count_turns(server, one) <= 2
    assert not fetched.is_answered
    assert count_turns(server, fetched) >= 8
    assert offsets_of(fetched) == {"foo": list(offsets.items())}


@pytest.mark.parametrize("scans_max", [0, 32])
def test_very_many_offsets_by_name_are_what_few_at_a_time_are(
    server: VirtualServer, monkeypatch: pytest.MonkeyPatch, scans_max: int
) -> None:
    monkeypatch.setattr(offset_reads, "SCANS_MAX", scans_max)
    commit(server, "foo", {number: 100 + number for number in range(0, 40, 2)})
    commit(server, "bar", {number: 200 + number for number in range(0, 40, 3)})
    commit(server, "foo", {1: 7}, "another")
    unknown = TopicToFetch(None, TopicId(b"x" * 16), (0, 1, 2))
    by_id = TopicToFetch(None, server.topic("bar"), (3, 4))
    wanted = [
        name("foo", *range(39, 19, -1), 0, 0),
        name("nothing", 0, 5),
        name("bar", *range(45)),
        unknown,
        by_id,
        name("foo", 2),
    ]
    many = server.submit(make_fetch(*wanted))
    assert count_turns(server, many) >= 5
    answer = many.answer
    assert isinstance(answer, OffsetFetchResponse)
    assert answer.topics[3].partitions[0].error is ErrorCode.UNKNOWN_TOPIC_ID
    monkeypatch.setattr(offset_reads, "SLICE", 1_000)
    assert server.ask(make_fetch(*wanted)) == answer
    nobody = OffsetFetch(CALLER, GroupId("nobody"), tuple(wanted))
    at_once = server.ask(nobody)
    monkeypatch.setattr(offset_reads, "SLICE", SLICE)
    assert server.ask(nobody) == at_once


@pytest.mark.parametrize("wanted", [(), (name("foo", *range(40)),)], ids=["all", "named"])
def test_offsets_are_those_of_one_time(
    server: VirtualServer, wanted: tuple[TopicToFetch, ...]
) -> None:
    before = dict.fromkeys(range(40), 1)
    commit(server, "foo", before)
    fetched = server.submit(make_fetch(*wanted))
    commit(server, "foo", dict.fromkeys(range(40), 2))
    assert offsets_of(fetched) == {"foo": list(before.items())}
    assert server.fetch(GROUP, "foo", 39) == 2


LONG = "x" * 40_000
"""Longer than a key of a record can say."""


@pytest.mark.parametrize(
    "many", [pytest.param(False, id="few"), pytest.param(True, id="very-many")]
)
def test_what_no_key_can_name_has_no_offset(server: VirtualServer, many: bool) -> None:
    commit(server, "foo", {0: 7})
    partitions = range(SLICE + 1) if many else range(2)
    fetched = server.submit(make_fetch(name(LONG, *partitions), name("foo", 0)))
    server.settle()
    nothing = [(number, -1) for number in partitions]
    assert offsets_of(fetched) == {LONG: nothing, "foo": [(0, 7)]}


def test_a_group_whose_id_no_key_can_have_has_no_offsets(server: VirtualServer) -> None:
    fetched = server.submit(OffsetFetch(CALLER, GroupId(LONG), None))
    server.settle()
    assert offsets_of(fetched) == {}


def test_an_offset_that_no_key_can_name_is_not_there_to_be_deleted(server: VirtualServer) -> None:
    commit(server, "foo", {0: 7})
    topics = ((TopicName(LONG), (0,)), (TopicName("foo"), (0,)))
    assert not isinstance(server.ask(DeleteOffsets(CALLER, GroupId(GROUP), topics)), GroupError)
    assert server.fetch(GROUP, "foo", 0) == -1


DELETION = DeleteOffsets(CALLER, GroupId(GROUP), ((TopicName("foo"), (0,)),))


@pytest.mark.parametrize(
    ("command", "at"),
    [
        (make_fetch(), "latest"),
        (make_fetch(name("foo", *range(40))), "latest"),
        (make_fetch(name("foo", 0)), "get_many_latest"),
        (DeleteGroup(CALLER, GroupId(GROUP)), "latest"),
        (DELETION, "get_many_latest"),
        pytest.param(DELETION, "latest", id="DeleteOffsets-written"),
        (ConsumerGroupDescribe(CALLER, (GroupId(GROUP),)), "read_groups"),
        (ListGroups(CALLER), "read_groups"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_whatever_fails_in_a_slice_is_answered(
    server: VirtualServer, monkeypatch: pytest.MonkeyPatch, command: Command, at: str
) -> None:
    commit(server, "foo", dict.fromkeys(range(40), 1))

    def fail(*_: object) -> NoReturn:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(group_reads if at == "read_groups" else server.store, at, fail)
    pending = server.submit(command)
    server.settle()
    assert pending.is_answered
    assert not server.runtime.parts.is_busy


async def test_highest_offsets_are_read_in_slices(
    server: VirtualServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(server, "foo", {number: number for number in range(40)})
    turns = 0

    async def count(delay: float) -> None:
        nonlocal turns
        turns += 1

    monkeypatch.setattr(asyncio, "sleep", count)
    highest = await read_highest_offsets(server.store, server.runtime.shards)
    assert highest == {(TopicName("foo"), number): number for number in range(40)}
    assert turns >= 40 / SLICE
