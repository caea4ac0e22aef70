"""A ticket for commits to the cluster: what the cluster says of them, and when it is valid."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from coordinator.runtime.api import CommitTicket
from model.commands.classic import JoinGroup, JoinProtocol
from model.commands.places import NotePlace
from model.commands.topics import ReplaceTopics
from model.errors import ErrorCode
from model.ids import MemberId, TopicName
from model.log.commit_records import OffsetColumns
from model.places import Place
from model.topics import Topic
from tests.support.upstream.offset_cluster import Fate
from tests.support.upstream.offsets_rig import (
    FOO,
    PARTITIONS,
    G,
    OffsetsRig,
    Released,
    make_commit,
    make_lone_commit,
)
from tests.support.virtual.server import CALLER, make_topic_id
from tests.support.waiting import until
from upstream.offsets import cluster_offsets
from upstream.offsets.cluster_offsets import OffsetLimits
from upstream.offsets.commit_queue import ANSWERS_SLICE


@pytest.fixture
async def rig() -> AsyncIterator[OffsetsRig]:
    rig = OffsetsRig()
    await rig.start_alone()
    yield rig
    await rig.stop()


@pytest.fixture
def ticket(rig: OffsetsRig) -> CommitTicket:
    return rig.find_ticket()


async def test_it_is_answered_when_the_cluster_has_it(
    rig: OffsetsRig, ticket: CommitTicket
) -> None:
    rig.fake.gate = asyncio.Event()
    asked = Released(ticket, 3, 5)
    await asyncio.sleep(0)
    assert asked.is_taken
    assert asked.codes == []
    rig.fake.gate.set()
    assert await asked.code() is ErrorCode.NONE
    assert rig.fake.offsets[G] == {(FOO, 3): (5, -1, "")}


@pytest.mark.parametrize("fate", [Fate.LOST, Fate.LOST_DONE, Fate.MOVING])
async def test_what_may_be_lost_is_never_a_success(
    rig: OffsetsRig, ticket: CommitTicket, fate: Fate
) -> None:
    rig.fake.fates.append(fate)
    assert await Released(ticket, 0, 1).code() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


async def test_a_result_of_its_partition_is_its_own(rig: OffsetsRig, ticket: CommitTicket) -> None:
    rig.fake.topics_gone.add(FOO)
    assert await Released(ticket, 0, 1).code() is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_lost_seat_is_told(rig: OffsetsRig, ticket: CommitTicket) -> None:
    del rig.fake.seats[G]
    rig.seats.may_join = False
    asked = Released(ticket, 0, 1), Released(ticket, 1, 1)
    codes = [await each.code() for each in asked]
    assert codes == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 2


async def test_of_two_in_a_batch_the_later_is_sent(rig: OffsetsRig, ticket: CommitTicket) -> None:
    rig.fake.gate = asyncio.Event()
    asked = [Released(ticket, 0, 1)]
    asked += [Released(ticket, number % 2, number) for number in range(2, 9)]
    rig.fake.gate.set()
    assert [await each.code() for each in asked] == [ErrorCode.NONE] * 8
    assert rig.fake.commits() == [{(FOO, 0): 1}, {(FOO, 0): 8, (FOO, 1): 7}]


async def test_it_stays_in_order_with_commands_and_fetches(
    rig: OffsetsRig, ticket: CommitTicket
) -> None:
    rig.fake.gate = asyncio.Event()
    first = rig.commit_alone((0, 1))
    asked = Released(ticket, 0, 2)
    second = rig.commit_alone((0, 3), (1, 3))
    third = Released(ticket, 1, 4)
    fetched = rig.fetch(0, 1)
    await asyncio.sleep(0)
    assert not fetched.is_answered
    rig.fake.gate.set()
    assert await fetched.said() == "0=3, 1=4"
    assert first.is_answered
    assert second.is_answered
    assert (await asked.code(), await third.code()) == (ErrorCode.NONE, ErrorCode.NONE)


async def test_a_text_of_before_is_replaced(rig: OffsetsRig, ticket: CommitTicket) -> None:
    rig.fake.gate = asyncio.Event()
    asked = [rig.commit_alone((1, 1)), rig.commit_alone((0, 1, "text"))]
    repeated = Released(ticket, 0, 2)
    rig.fake.gate.set()
    assert [await each.said() for each in asked] == ["1 NONE", "0 NONE"]
    assert await repeated.code() is ErrorCode.NONE
    assert rig.fake.offsets[G][FOO, 0] == (2, -1, "")


async def test_many_are_answered_in_slices(rig: OffsetsRig, ticket: CommitTicket) -> None:
    asked = [Released(ticket, n % PARTITIONS, n) for n in range(3 * ANSWERS_SLICE)]
    assert [await each.code() for each in asked] == [ErrorCode.NONE] * len(asked)
    assert len(rig.fake.commits()) == 2


async def test_the_next_are_sent_before_all_are_answered(
    rig: OffsetsRig, ticket: CommitTicket
) -> None:
    asked = [Released(ticket, n % PARTITIONS, n) for n in range(3 * ANSWERS_SLICE)]
    unanswered: list[int] = []

    def note(request: object) -> Fate:
        unanswered.append(sum(not each.codes for each in asked))
        if len(unanswered) == 2:
            asked.append(Released(ticket, 0, 1_000))
        return Fate.ANSWERED

    rig.fake.find_fate = note
    assert [await each.code() for each in asked] == [ErrorCode.NONE] * len(asked)
    assert await asked[-1].code() is ErrorCode.NONE
    assert len(unanswered) == 3
    assert unanswered[2] > ANSWERS_SLICE
    assert rig.fake.most_running == 1
    assert rig.fake.offsets[G][FOO, 0][0] == 1_000


async def test_a_stop_in_between_answers_all(rig: OffsetsRig, ticket: CommitTicket) -> None:
    """What is done is told as done, also when the next batch is on its way."""
    asked = [Released(ticket, n % PARTITIONS, n) for n in range(3 * ANSWERS_SLICE)]
    requests: list[object] = []

    def note(request: object) -> Fate:
        requests.append(request)
        if len(requests) == 2:
            asked.append(Released(ticket, 0, 1_000))
            rig.fake.gate = asyncio.Event()
        return Fate.ANSWERED

    rig.fake.find_fate = note
    await until(lambda: len(rig.fake.asked) == 3, "the third is asked", pause_s=0)
    await rig.offsets.stop()
    codes = [await each.code() for each in asked]
    assert codes[:-1] == [ErrorCode.NONE] * (len(asked) - 1)
    assert codes[-1] is ErrorCode.COORDINATOR_NOT_AVAILABLE


async def test_those_whose_time_is_over_are_answered_and_not_sent(
    rig: OffsetsRig, ticket: CommitTicket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_offsets, "WATCH_S", 0)
    rig.fake.gate = asyncio.Event()
    asked = [Released(ticket, 0, 1), Released(ticket, 0, 2)]
    await asyncio.sleep(0)
    rig.now_ms += cluster_offsets.TIMEOUT_MS
    assert [await each.code() for each in asked] == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 2
    rig.fake.gate.set()
    await rig.offsets.close(G)
    assert rig.fake.commits() == [{(FOO, 0): 1}]


async def test_a_full_queue_takes_none() -> None:
    rig = OffsetsRig(limits=OffsetLimits(group_bytes=1_000))
    await rig.start_alone()
    rig.fake.gate = asyncio.Event()
    ticket = rig.find_ticket()
    asked = [Released(ticket, 0, n) for n in range(20)]
    assert [each.is_taken for each in asked] == [True] * 6 + [False] * 14
    rig.fake.gate.set()
    assert [await each.code() for each in asked[:6]] == [ErrorCode.NONE] * 6
    assert all(each.codes == [] for each in asked[6:])
    assert Released(ticket, 0, 1).is_taken
    await rig.stop()


async def test_a_stop_answers_all(rig: OffsetsRig, ticket: CommitTicket) -> None:
    rig.fake.gate = asyncio.Event()
    asked = [Released(ticket, 0, 1), Released(ticket, 0, 2)]
    await asyncio.sleep(0)
    await rig.offsets.stop()
    codes = [await each.code() for each in asked]
    assert codes == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2
    assert not Released(ticket, 0, 3).is_taken


async def _close(rig: OffsetsRig) -> None:
    await rig.offsets.close(G)


async def _return(rig: OffsetsRig) -> None:
    await rig.runtime.call(NotePlace(CALLER, G, Place.RETURNING))


async def _leave(rig: OffsetsRig) -> None:
    await rig.runtime.call(NotePlace(CALLER, G, Place.UPSTREAM))


async def _come_again(rig: OffsetsRig) -> None:
    await _leave(rig)
    await rig.runtime.call(NotePlace(CALLER, G, Place.MUSTER))


async def _change_topics(rig: OffsetsRig) -> None:
    added = Topic(TopicName("bar"), make_topic_id("bar"), 1)
    await rig.runtime.call(ReplaceTopics(CALLER, (added,), ()))


async def _join(rig: OffsetsRig) -> None:
    protocols = (JoinProtocol("range", b""),)
    join = JoinGroup(
        CALLER,
        G,
        None,
        MemberId("a"),
        10_000,
        60_000,
        "consumer",
        protocols,
        requires_member_id=False,
    )
    rig.runtime.submit(join, lambda answer: None)


@pytest.mark.parametrize("change", [_close, _return, _leave, _come_again, _change_topics, _join])
async def test_it_dies_with_what_it_was_given_for(
    rig: OffsetsRig, ticket: CommitTicket, change: Callable[[OffsetsRig], Awaitable[None]]
) -> None:
    assert await Released(ticket, 0, 1).code() is ErrorCode.NONE
    await change(rig)
    assert not Released(ticket, 0, 2).is_taken
    assert rig.fake.offsets[G][FOO, 0][0] == 1


async def test_a_partition_that_is_not_there_needs_a_command(ticket: CommitTicket) -> None:
    assert not Released(ticket, PARTITIONS, 1).is_taken
    assert not Released(ticket, -1, 1).is_taken


async def test_several_partitions_need_a_command(rig: OffsetsRig, ticket: CommitTicket) -> None:
    assert rig.offsets.ticket(make_lone_commit((0, 1), (1, 1))) is None
    offsets = OffsetColumns((0, 1), (1, 1), (-1, -1))
    assert not ticket.commit(offsets, 0, lambda error=ErrorCode.NONE, /: None)


async def test_there_is_none_for_who_may_not_commit(rig: OffsetsRig) -> None:
    assert rig.offsets.ticket(make_commit("nobody", (0, 1))) is None
    await _return(rig)
    assert rig.offsets.ticket(make_lone_commit((0, 1))) is None
