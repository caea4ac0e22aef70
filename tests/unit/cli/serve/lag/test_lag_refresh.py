"""Looks at the lag of groups, with a real runtime and ends that the test sets."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence

import pytest

from cli.serve.lag import lag_refresh, loop_share
from cli.serve.lag.committed_offsets import FetchedOffsets
from cli.serve.lag.group_status import Rule, Status
from cli.serve.lag.lag_figures import Committed, Ends, Sums, compute_lag
from cli.serve.lag.loop_share import LoopShare
from coordinator.service.ends.end_reports import EndReports, ReportedEnd, ReportLimits
from coordinator.service.ends.known_ends import KnownEnds
from model.errors import CoordinatorNotAvailable
from model.ids import GroupId, TopicName
from tests.unit.cli.serve.lag.lag_rig import LagRig


@pytest.fixture
async def rig() -> AsyncIterator[LagRig]:
    rig = await LagRig.start(orders=6, payments=2)
    yield rig
    await rig.runtime.stop()


@pytest.mark.parametrize(
    ("committed", "ends", "lag", "ahead"),
    [
        (5, Ends(0, 8), 3, 0),
        (8, Ends(0, 8), 0, 0),
        (9, Ends(0, 8), 0, 1),
        (9, Ends(None, ReportedEnd(8)), 0, 0),
        (2, Ends(6, 8), 2, 0),
        (2, Ends(None, 8), 6, 0),
        (2, Ends(8, 8), 0, 0),
        (5, Ends(0, None), None, None),
        (5, Ends(None, None), None, None),
    ],
)
def test_what_is_no_longer_there_is_no_lag(
    committed: int, ends: Ends, lag: int | None, ahead: int | None
) -> None:
    assert compute_lag(committed, ends) == (lag, ahead)


async def test_lag_is_shown_of_ends_that_are_reported(rig: LagRig) -> None:
    reports = EndReports(ReportLimits(10, 1_000))
    ends = KnownEnds(rig.ends, reports, image=lambda: rig.runtime.image, now_ms=lambda: 0)
    rig.refresh = rig.make_refresh(ends=ends)
    await rig.commit("billing", "orders", {0: 10, 1: 12, 2: 1})
    topic_id = rig.runtime.image.by_name[TopicName("orders")].topic_id
    reports.take(topic_id, 0, 30, 0)
    reports.take(topic_id, 1, 10, 0)
    group = await rig.group("billing")
    assert [(row.end, row.lag, row.ahead) for row in group.rows] == [
        (30, 20, 0),
        (10, 0, 0),
        (None, None, None),
    ]
    assert (group.sums.lag, group.sums.ahead, group.sums.unknown) == (20, 0, 1)


async def test_lag_is_exact_by_partition_topic_and_group(rig: LagRig) -> None:
    rig.ends.places = {("orders", 0): (0, 30), ("orders", 1): (0, 10), ("payments", 1): (4, 9)}
    await rig.commit("billing", "orders", {0: 10, 1: 12})
    await rig.commit("billing", "payments", {1: 2})
    before_ms = time.time_ns() // 1_000_000
    group = await rig.group("billing")
    assert [(row.topic, row.partition, row.lag, row.ahead) for row in group.rows] == [
        ("orders", 0, 20, 0),
        ("orders", 1, 0, 2),
        ("payments", 1, 5, 0),
    ]
    orders = group.topics[TopicName("orders")]
    assert (orders.committed, orders.lag, orders.ahead, orders.unknown) == (22, 20, 2, 0)
    assert (group.sums.lag, group.sums.ahead) == (25, 2)
    assert group.sums.committed_ms is not None
    assert before_ms - 2_000 < group.sums.committed_ms <= time.time_ns() // 1_000_000


async def test_what_is_not_known_is_not_0(rig: LagRig) -> None:
    await rig.commit("billing", "orders", {0: 10, 1: 10})
    group = await rig.group("billing")
    assert group.sums == Sums(20, None, None, None, 2, group.sums.committed_ms)
    assert group.status is Status.NOTFOUND
    assert group.rows[0].status is None
    rig.ends.places = {("orders", 1): (0, 11)}
    group = await rig.group("billing")
    assert (group.sums.lag, group.sums.unknown) == (1, 1)


async def test_lag_in_time_is_told_by_what_looks_have_seen(
    rig: LagRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_ms = 1_000_000
    monkeypatch.setattr(lag_refresh.time, "monotonic_ns", lambda: now_ms * 1_000_000)
    rig.ends.places = {("orders", 0): (0, 100)}
    await rig.commit("billing", "orders", {0: 100})
    assert (await rig.group("billing")).sums.lag_ms == 0
    now_ms += 10_000
    rig.ends.places = {("orders", 0): (0, 200)}
    # The record at 100 came at the beginning of the 10 s, about.
    assert (await rig.group("billing")).sums.lag_ms == pytest.approx(9_900, abs=1)
    now_ms += 5_000
    assert (await rig.group("billing")).sums.lag_ms == pytest.approx(14_900, abs=1)


async def test_a_group_that_was_behind_before_the_first_look_has_no_lag_in_time(
    rig: LagRig,
) -> None:
    rig.ends.places = {("orders", 0): (0, 100)}
    await rig.commit("billing", "orders", {0: 10})
    sums = (await rig.group("billing")).sums
    assert (sums.lag, sums.lag_ms) == (90, None)


async def test_a_status_comes_of_many_looks(rig: LagRig) -> None:
    rig.ends.places = {("orders", 0): (0, 100)}
    for offset in (10, 20, 30):
        await rig.commit("billing", "orders", {0: offset})
        await asyncio.sleep(0.002)
        rig.ends.places = {("orders", 0): (0, 100 + 2 * offset)}
        group = await rig.group("billing")
    assert group.rows[0].rule is Rule.LAG_GROWS
    assert group.status is Status.WARN
    assert [commit.offset for commit in group.rows[0].window.commits()] == [10, 20, 30]
    await rig.commit("billing", "orders", {0: 5})
    assert (await rig.group("billing")).status is Status.ERR


async def test_groups_of_one_topic_ask_for_its_ends_together(rig: LagRig) -> None:
    for number in range(30):
        await rig.commit(f"g{number}", "orders", {0: 1, 1: 1})
    assert len((await rig.look()).groups) == 30
    assert rig.ends.asked == [2, 2]


async def test_a_group_of_very_many_partitions_is_looked_at_in_parts(
    rig: LagRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lag_refresh, "BATCH", 2)
    rig.ends.places = {("orders", number): (0, 7) for number in range(6)}
    await rig.commit("billing", "orders", dict.fromkeys(range(6), 5))
    assert (await rig.group("billing")).sums.lag == 12
    assert rig.ends.asked == [2] * 6


async def test_partitions_are_bounded_by_groups_as_a_whole(rig: LagRig) -> None:
    for group in ("a", "b", "c", "d"):
        await rig.commit(group, "orders", {0: 1, 1: 1, 2: 1})
    rig.refresh = rig.make_refresh(partitions_max=7)
    figures = await rig.look()
    assert len(figures.groups) == 2
    assert figures.omitted == 2
    assert all(len(group.rows) == 3 for group in figures.groups.values())


async def test_a_group_that_is_gone_is_forgotten(rig: LagRig) -> None:
    await rig.commit("billing", "orders", {0: 1})
    rig.ends.places = {("orders", 0): (0, 7)}
    assert set((await rig.look()).groups) == {"billing"}
    shard = rig.runtime.shards[rig.runtime.partition_of(GroupId("billing"))]
    shard.state.offset_groups.clear()
    assert not (await rig.look()).groups
    assert not rig.refresh._windows


class Unreadable:
    """``CommittedOffsets`` whose second group cannot be read."""

    def list_groups(self, shard: int) -> Sequence[GroupId]:
        return [GroupId("a"), GroupId("b"), GroupId("c")] if shard == 0 else []

    async def read(self, group_id: GroupId, share: LoopShare, most: int) -> list[Committed]:
        if group_id == "b":
            raise CoordinatorNotAvailable("the cluster does not answer")
        return [Committed(TopicName("orders"), 0, 5, None)]


async def test_a_group_that_cannot_be_read_is_counted_and_left_out(rig: LagRig) -> None:
    rig.refresh = rig.make_refresh(committed=Unreadable())
    figures = await rig.look()
    assert (set(figures.groups), figures.failed) == ({"a", "c"}, 1)


async def test_offsets_of_a_cluster_are_fetched_of_groups_that_are_here(rig: LagRig) -> None:
    await rig.commit("billing", "orders", {1: 5, 0: 4})
    fetched = FetchedOffsets(rig.runtime, rig.runtime)
    found = await fetched.read(GroupId("billing"), LoopShare(), 10)
    assert found == [
        Committed(TopicName("orders"), 0, 4, None),
        Committed(TopicName("orders"), 1, 5, None),
    ]
    assert await fetched.read(GroupId("billing"), LoopShare(), 1) == found[:1]
    assert [fetched.list_groups(number) for number in range(4)] == [[]] * 4


async def test_looks_repeat_and_survive_a_bug(rig: LagRig, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    async def look() -> None:
        nonlocal looks
        looks += 1
        raise RuntimeError("a bug")

    async def sleep(seconds: float) -> None:
        assert seconds > 0
        await real_sleep(0)

    real_sleep = asyncio.sleep
    monkeypatch.setattr(rig.refresh, "look", look)
    monkeypatch.setattr(lag_refresh.asyncio, "sleep", sleep)
    rig.refresh.start()
    for _ in range(20):
        await real_sleep(0)
    await rig.refresh.stop()
    assert looks >= 3


async def test_the_pace_leaves_most_of_the_time_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = 0.0
    rested: list[float] = []

    async def sleep(seconds: float) -> None:
        rested.append(seconds)

    monkeypatch.setattr(loop_share, "perf_counter", lambda: now_s)
    monkeypatch.setattr(loop_share.asyncio, "sleep", sleep)
    share = LoopShare()
    for _ in range(10):
        now_s += 0.001
        await share.rest()
    assert rested == [pytest.approx(0.038)] * 5
    now_s += 60
    share.go_on()
    await share.rest()
    assert len(rested) == 5
