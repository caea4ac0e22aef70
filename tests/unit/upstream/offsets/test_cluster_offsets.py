"""Commits and fetches of groups that were taken over, whose offsets are in the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from model.errors import ErrorCode
from model.ids import TopicName
from tests.support.upstream.offset_cluster import COMMIT, TXN_COMMIT, Fate
from tests.support.upstream.offsets_rig import FOO, Asked, G, OffsetsRig, make_commit
from upstream.offsets import cluster_offsets, commit_queue
from upstream.offsets.cluster_offsets import TIMEOUT_MS, OffsetLimits


@pytest.fixture
async def rig() -> AsyncIterator[OffsetsRig]:
    made = OffsetsRig()
    await made.start()
    yield made
    await made.stop()


async def test_a_commit_goes_to_the_cluster_in_the_name_of_the_sentinel(rig: OffsetsRig) -> None:
    assert await rig.commit("a", (0, 5, "note"), (1, 6)).said() == "0 NONE, 1 NONE"
    assert rig.fake.offsets[G] == {(FOO, 0): (5, -1, "note"), (FOO, 1): (6, -1, "")}
    (request,) = rig.fake.asked
    fields = request.fields
    assert (request.key, fields["member_id"], fields["group_instance_id"]) == (
        COMMIT,
        "muster-1",
        "muster",
    )
    assert fields["generation_id_or_member_epoch"] == 1
    assert not rig.runtime.shards[rig.runtime.partition_of(G)].offset_groups


async def test_what_is_refused_here_never_reaches_the_cluster(rig: OffsetsRig) -> None:
    assert await rig.commit("nobody", (0, 5)).said() == "UNKNOWN_MEMBER_ID"
    late = make_commit("a", (0, 5))
    late.member_epoch = 6  # type: ignore[misc]
    asked = Asked(lambda reply: rig.offsets.commit(late, reply))
    assert await asked.said() == "ILLEGAL_GENERATION"
    assert await rig.commit("a", (99, 5)).said() == "99 UNKNOWN_TOPIC_OR_PARTITION"
    assert rig.fake.asked == []
    assert await rig.commit("a", (99, 5), (1, 7)).said() == (
        "99 UNKNOWN_TOPIC_OR_PARTITION, 1 NONE"
    )
    assert rig.fake.commits() == [{(FOO, 1): 7}]


async def test_commits_are_gathered_while_one_is_on_its_way(rig: OffsetsRig) -> None:
    rig.fake.gate = asyncio.Event()
    asked = [rig.commit("ab"[n % 2], (n, n)) for n in range(10)]
    rig.fake.gate.set()
    assert [await each.said() for each in asked] == [f"{n} NONE" for n in range(10)]
    first, second = rig.fake.commits()
    assert len(first) == 1
    assert len(second) == 9
    assert rig.fake.most_running == 1


async def test_very_many_answers_are_given_in_slices() -> None:
    rig = OffsetsRig()
    await rig.start()
    rig.fake.gate = asyncio.Event()
    asked = [rig.commit("a", (0, n)) for n in range(350)]
    rig.fake.gate.set()
    most = before = 0
    while before < len(asked):
        await asyncio.sleep(0)
        now = sum(each.is_answered for each in asked)
        most, before = max(most, now - before), now
    assert most == commit_queue.ANSWERS_SLICE
    await rig.stop()


async def test_of_two_commits_of_a_partition_the_later_is_sent(rig: OffsetsRig) -> None:
    rig.fake.gate = asyncio.Event()
    asked = [rig.commit("a", (0, offset)) for offset in (1, 2, 3, 2)]
    rig.fake.gate.set()
    assert {await each.said() for each in asked} == {"0 NONE"}
    assert rig.fake.commits() == [{(FOO, 0): 1}, {(FOO, 0): 2}]


async def test_a_longer_text_does_not_refuse_an_earlier_commit(rig: OffsetsRig) -> None:
    rig.fake.gate = asyncio.Event()
    asked = [rig.commit("a", (0, n, "x" * length)) for n, length in enumerate((1, 3, 2, 11))]
    rig.fake.gate.set()
    said = [await each.said() for each in asked]
    assert said == ["0 NONE", "0 NONE", "0 NONE", "0 OFFSET_METADATA_TOO_LARGE"]
    assert rig.fake.offsets[G][FOO, 0] == (2, -1, "xx")


async def test_a_partition_twice_in_a_commit(rig: OffsetsRig) -> None:
    assert await rig.commit("a", (0, 9), (1, 1), (0, 4)).said() == "0 NONE, 1 NONE, 0 NONE"
    assert rig.fake.offsets[G][FOO, 0][0] == 4


async def test_a_large_commit_goes_in_parts(
    rig: OffsetsRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_queue, "BATCH_BYTES_MAX", 350)
    asked = [rig.commit("a", *((n, 1) for n in range(8))), rig.commit("b", (7, 2))]
    assert [await each.said() for each in asked] == [
        ", ".join(f"{n} NONE" for n in range(8)),
        "7 NONE",
    ]
    assert max(map(len, rig.fake.commits())) == 3
    assert {offset for offset, _, _ in rig.fake.offsets[G].values()} == {1, 2}
    assert rig.fake.offsets[G][FOO, 7][0] == 2


async def test_results_are_by_partition(rig: OffsetsRig) -> None:
    rig.fake.topics_gone.add("foo")
    assert await rig.commit("a", (0, 5), (1, 5)).said() == (
        "0 UNKNOWN_TOPIC_OR_PARTITION, 1 UNKNOWN_TOPIC_OR_PARTITION"
    )


async def test_a_fetch_shows_the_commits_before_it(rig: OffsetsRig) -> None:
    rig.fake.gate = asyncio.Event()
    first, second = rig.commit("a", (0, 5)), rig.commit("b", (1, 6))
    fetched = rig.fetch(0, 1, 2)
    third = rig.commit("a", (0, 7))
    await asyncio.sleep(0)
    assert not fetched.is_answered
    rig.fake.gate.set()
    assert await fetched.said() in ("0=5, 1=6, 2=-1", "0=7, 1=6, 2=-1")
    assert first.is_answered
    assert second.is_answered
    assert await third.said() == "0 NONE"
    assert await rig.fetch().said() == "0=7, 1=6"


async def test_a_fetch_of_what_is_not_stable(rig: OffsetsRig) -> None:
    await rig.commit("a", (0, 5), (1, 5)).answer()
    rig.fake.unstable.add((FOO, 1))
    assert await rig.fetch(0, 1).said() == "0=5, 1=5"
    assert await rig.fetch(0, 1, require_stable=True).said() == "0=5, 1=UNSTABLE_OFFSET_COMMIT"


@pytest.mark.parametrize("fate", [Fate.LOST, Fate.MOVING])
async def test_a_fetch_without_an_answer_is_to_be_repeated(rig: OffsetsRig, fate: Fate) -> None:
    rig.fake.fates.append(fate)
    assert await rig.fetch(0).said() == "COORDINATOR_LOAD_IN_PROGRESS"


async def test_while_the_sentinel_rebalances_commits_wait(rig: OffsetsRig) -> None:
    rig.fake.fates += [Fate.REBALANCING, Fate.REBALANCING]
    asked = [rig.commit("a", (0, 1)), rig.commit("a", (0, 2))]
    assert [await each.said() for each in asked] == ["0 NONE", "0 NONE"]
    assert rig.fake.commits() == [{(FOO, 0): 1}] * 3 + [{(FOO, 0): 2}]


async def test_a_rebalance_without_end_is_not_waited_for(rig: OffsetsRig) -> None:
    def rebalance(request: object) -> Fate:
        rig.now_ms += 20_000
        return Fate.REBALANCING

    rig.fake.find_fate = rebalance
    assert await rig.commit("a", (0, 1)).said() == "COORDINATOR_LOAD_IN_PROGRESS"


async def test_a_lost_seat_is_told_and_nothing_is_acknowledged(rig: OffsetsRig) -> None:
    del rig.fake.seats[G]
    rig.seats.may_join = False
    asked = [rig.commit("a", (0, 1)), rig.commit("b", (1, 1))]
    assert [await each.said() for each in asked] == ["COORDINATOR_LOAD_IN_PROGRESS"] * 2
    assert rig.seats.refused == [(G, ErrorCode.UNKNOWN_MEMBER_ID)]
    rig.seats.may_join = True
    assert await rig.commit("a", (0, 1)).said() == "0 NONE"


async def test_a_seat_that_was_taken_again_meanwhile_is_used(rig: OffsetsRig) -> None:
    rig.fake.gate = asyncio.Event()
    asked = rig.commit("a", (0, 1))
    await asyncio.sleep(0)
    rig.seats.join(G)
    rig.fake.gate.set()
    assert await asked.said() == "0 NONE"
    assert rig.seats.refused == []


async def test_after_a_lost_answer_nothing_goes_in_the_same_name(rig: OffsetsRig) -> None:
    rig.fake.fates.append(Fate.LOST_LATE)
    asked = [rig.commit("a", (0, 1)), rig.commit("a", (0, 2))]
    assert await asked[0].said() == "COORDINATOR_LOAD_IN_PROGRESS"
    assert await asked[1].said() == "0 NONE"
    rig.fake.do_late()
    assert rig.fake.offsets[G][FOO, 0][0] == 2


async def test_without_a_fence_a_lost_commit_would_come_back() -> None:
    """What the fence is for; else the test above would prove nothing."""
    rig = OffsetsRig(fences=False)
    await rig.start()
    rig.fake.fates.append(Fate.LOST_LATE)
    asked = [rig.commit("a", (0, 1)), rig.commit("a", (0, 2))]
    assert await asked[1].said() == "0 NONE"
    rig.fake.do_late()
    assert rig.fake.offsets[G][FOO, 0][0] == 1
    await rig.stop()


@pytest.fixture
def silent(rig: OffsetsRig, monkeypatch: pytest.MonkeyPatch) -> OffsetsRig:
    """A cluster that has a request and does not answer it, until its gate is set."""
    monkeypatch.setattr(cluster_offsets, "WATCH_S", 0)
    rig.fake.gate = asyncio.Event()
    return rig


async def test_a_commit_is_answered_in_time_whatever_the_cluster_does(silent: OffsetsRig) -> None:
    asked = [silent.commit("a", (0, 1)), silent.commit("b", (1, 1)), silent.commit("a", (0, 2))]
    await asyncio.sleep(0)
    silent.now_ms += TIMEOUT_MS - 1
    later = silent.commit("b", (1, 2))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not any(each.is_answered for each in asked)
    silent.now_ms += 1
    assert [await each.said() for each in asked] == ["COORDINATOR_LOAD_IN_PROGRESS"] * 3
    assert not later.is_answered
    open_gate(silent)
    assert await later.said() == "1 NONE"
    assert silent.fake.commits() == [{(FOO, 0): 1}, {(FOO, 1): 2}]


async def test_no_commit_overtakes_one_that_was_answered_before_its_time(
    silent: OffsetsRig,
) -> None:
    """It may be done yet, and would take back what was done before it."""
    first = silent.commit("a", (0, 1))
    await asyncio.sleep(0)
    silent.now_ms += TIMEOUT_MS
    assert await first.said() == "COORDINATOR_LOAD_IN_PROGRESS"
    second = silent.commit("a", (0, 2))
    for _ in range(5):
        await asyncio.sleep(0)
    assert silent.fake.commits() == [{(FOO, 0): 1}]
    open_gate(silent)
    assert await second.said() == "0 NONE"
    assert silent.fake.offsets[G][FOO, 0][0] == 2
    assert silent.fake.most_running == 1


async def test_a_closed_group_has_nothing_on_its_way(silent: OffsetsRig) -> None:
    asked = silent.commit("a", (0, 1))
    await asyncio.sleep(0)
    silent.now_ms += TIMEOUT_MS
    assert await asked.said() == "COORDINATOR_LOAD_IN_PROGRESS"
    closing = asyncio.ensure_future(silent.offsets.close(G))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not closing.done()
    open_gate(silent)
    await closing
    assert silent.fake.offsets[G][FOO, 0][0] == 1


async def test_what_is_on_its_way_is_counted_until_it_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else a cluster that answers nothing would hold any amount of it."""
    monkeypatch.setattr(cluster_offsets, "WATCH_S", 0)
    rig = OffsetsRig(limits=OffsetLimits(group_bytes=300))
    await rig.start()
    rig.fake.gate = asyncio.Event()
    first = rig.commit("a", (0, 1), (1, 1), (2, 1))
    await asyncio.sleep(0)
    rig.now_ms += TIMEOUT_MS
    assert await first.said() == "COORDINATOR_LOAD_IN_PROGRESS"
    assert await rig.commit("a", (0, 2)).said() == "COORDINATOR_LOAD_IN_PROGRESS"
    open_gate(rig)
    closing = asyncio.ensure_future(rig.offsets.close(G))
    await closing
    rig.offsets.reopen(G)
    assert await rig.commit("a", (0, 3)).said() == "0 NONE"
    await rig.stop()


async def test_a_fetch_is_answered_in_time_too(
    silent: OffsetsRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_offsets, "FETCH_MS", 1)
    asked, fetched = silent.commit("a", (0, 1)), silent.fetch(0)
    await asyncio.sleep(0)
    assert not fetched.is_answered
    silent.now_ms += TIMEOUT_MS
    assert await asked.said() == "COORDINATOR_LOAD_IN_PROGRESS"
    assert await fetched.said() == "COORDINATOR_LOAD_IN_PROGRESS"
    open_gate(silent)


def open_gate(rig: OffsetsRig) -> None:
    """From now on the cluster answers."""
    assert rig.fake.gate is not None
    rig.fake.gate.set()


@pytest.mark.parametrize(
    "limits", [OffsetLimits(group_bytes=1_000), OffsetLimits(all_bytes=1_000)], ids=["group", "all"]
)
async def test_the_queue_is_bounded(limits: OffsetLimits) -> None:
    rig = OffsetsRig(limits=limits)
    await rig.start()
    rig.fake.gate = asyncio.Event()
    asked = [rig.commit("a", (0, n)) for n in range(20)]
    rig.fake.gate.set()
    said = [await each.said() for each in asked]
    assert said.count("COORDINATOR_LOAD_IN_PROGRESS") == 14
    assert said[:6] == ["0 NONE"] * 6
    assert await rig.commit("a", (0, 5)).said() == "0 NONE"
    await rig.stop()


async def test_fetches_are_bounded() -> None:
    rig = OffsetsRig(limits=OffsetLimits(running=2))
    await rig.start()
    rig.fake.gate = asyncio.Event()
    asked = [rig.fetch(0) for _ in range(3)]
    assert await asked[2].said() == "COORDINATOR_LOAD_IN_PROGRESS"
    rig.fake.gate.set()
    assert [await each.said() for each in asked[:2]] == ["0=-1"] * 2
    await rig.stop()


async def test_a_closed_group_has_answered_all_and_takes_nothing(rig: OffsetsRig) -> None:
    rig.fake.gate = asyncio.Event()
    asked = [rig.commit("a", (0, 1)), rig.commit_transaction("b", (1, 1))]
    closing = asyncio.ensure_future(rig.offsets.close(G))
    await asyncio.sleep(0)
    assert not closing.done()
    assert await rig.commit("a", (0, 2)).said() == "NOT_COORDINATOR"
    assert await rig.commit_transaction("a", (0, 2)).said() == "NOT_COORDINATOR"
    rig.fake.gate.set()
    await closing
    assert [each.is_answered for each in asked] == [True, True]
    assert await rig.fetch(0).said() == "0=1"
    rig.offsets.reopen(G)
    assert await rig.commit("a", (0, 2)).said() == "0 NONE"


async def test_a_stop_answers_everything(rig: OffsetsRig) -> None:
    rig.fake.gate = asyncio.Event()
    asked = [rig.commit("a", (0, 1)), rig.commit("a", (0, 2)), rig.fetch(0)]
    asked.append(rig.commit_transaction("a", (0, 1)))
    await asyncio.sleep(0)
    await rig.offsets.stop()
    assert all(each.is_answered for each in asked)
    assert await rig.commit("a", (0, 3)).said() == "COORDINATOR_NOT_AVAILABLE"


async def test_a_transaction_is_the_client_s_in_the_sentinel_s_name(rig: OffsetsRig) -> None:
    assert await rig.commit_transaction("a", (0, 5), (99, 1)).said() == (
        "0 NONE, 99 UNKNOWN_TOPIC_OR_PARTITION"
    )
    (request,) = rig.fake.asked
    assert (request.key, request.version_max) == (TXN_COMMIT, 4)
    fields = request.fields
    assert (fields["transactional_id"], fields["producer_id"], fields["producer_epoch"]) == (
        "t",
        5,
        3,
    )
    assert (fields["member_id"], fields["generation_id"]) == ("muster-1", 1)
    assert await rig.commit_transaction("nobody", (0, 5)).said() == "UNKNOWN_MEMBER_ID"
    assert len(rig.fake.asked) == 1


async def test_topics_that_are_gone_are_fetched_by_name() -> None:
    """All offsets are shown, also of topics that the image does not have."""
    rig = OffsetsRig()
    await rig.start()
    rig.fake.offsets[G] = {(TopicName("old"), 3): (9, 2, "m")}
    assert await rig.fetch().said() == "3=9"
    await rig.stop()
