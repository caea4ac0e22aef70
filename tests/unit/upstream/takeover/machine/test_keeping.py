"""The machine of a move keeps groups of the simulated cluster, and gives them back."""

from __future__ import annotations

import pytest

from model.errors import ErrorCode
from model.places import Place
from tests.sim.upstream.cluster_values import EMPTY, STABLE
from tests.sim.upstream.move_driver import GROUP, MoveDriver
from tests.sim.upstream.stock_member import StockMember
from tests.support.upstream.move_steps import begin, restart, take
from upstream.takeover.machine.takeover_actions import (
    Action,
    Describe,
    Join,
    Sync,
)
from upstream.takeover.machine.takeover_events import (
    Asked,
    Released,
    SeatLost,
    StillHere,
    TopicsChanged,
)
from upstream.takeover.machine.takeover_steps import Step


def test_the_way_back_waits_for_the_last_member() -> None:
    model, members, muster = begin()
    take(muster, members)
    muster.send(Released("an operator", ("range",)))
    muster.pass_time(100)
    assert muster.is_at(Step.WAITING)
    assert muster.has_place(Place.RETURNING)
    for number, member in enumerate(members):
        member.member_id = ""
        member.join()
        muster.pass_time(1_000)
        assert member.code is not ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert not member.is_assigned
        if number < 2:
            muster.here.pop()
    muster.here.clear()
    muster.pass_time(200)
    assert all(member.is_assigned for member in members)
    assert muster.has_place(Place.UPSTREAM)
    assert model.group(GROUP).find_instance("muster") is None
    assert model.group(GROUP).state == STABLE


def test_the_sentinel_waits_longer_than_the_members_may_take() -> None:
    """Its rebalance timeout holds the join phase open."""
    _model, members, muster = begin(2)
    take(muster, members)
    muster.send(Released("an operator", ("range",)))
    members[0].member_id = ""
    members[0].join()
    muster.pass_time(500_000)
    assert not members[0].is_assigned
    assert muster.is_at(Step.WAITING)


def test_a_return_that_is_refused_closes_the_group_again() -> None:
    model, members, muster = begin()
    take(muster, members)
    muster.refusal = "it has members of the consumer protocol"
    muster.send(Released("an operator"))
    muster.pass_time(1_000)
    assert muster.is_at(Step.HERE)
    assert muster.move.error == "it has members of the consumer protocol"
    late = StockMember(model, GROUP, "late")
    late.join()
    assert late.code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("others", [0, 1])
def test_a_crash_while_returning_goes_on(others: int) -> None:
    model, members, muster = begin()
    take(muster, members)
    muster.send(Released("an operator", ("range",)))
    for member in members[:others]:
        member.member_id = ""
        member.join()
    again = restart(muster)
    again.pass_time(500)
    assert again.is_at(Step.WAITING)
    assert again.seat is not None
    committed = model.commit(
        GROUP, again.seat.member_id, "muster", again.seat.generation, {("orders", 0): 5}
    )
    assert committed is ErrorCode.NONE
    assert not any(member.is_assigned and member.member_id == "" for member in members)
    for member in members[others:]:
        member.member_id = ""
        member.join()
    again.here.clear()
    again.pass_time(500)
    assert again.has_place(Place.UPSTREAM)
    assert all(member.is_assigned for member in members)


@pytest.mark.parametrize("refusal", ["", "it has members of the consumer protocol"])
def test_an_open_sentinel_does_not_stay_beside_members(refusal: str) -> None:
    """The answer to its SyncGroup is lost, and a stock member joins meanwhile."""
    model, members, muster = begin()
    take(muster, members)
    late = StockMember(model, GROUP, "late")

    def lose(action: Action) -> str:
        if not isinstance(action, Sync):
            return ""
        muster.refusal = refusal
        late.join()
        return "after"

    muster.lose = lose
    muster.send(Released("an operator", ("range",)))
    muster.pass_time(1_000)
    if not refusal:
        assert muster.is_at(Step.WAITING)
        assert not late.is_assigned
        muster.here.clear()
    muster.pass_time(2_000)
    assert muster.has_place(Place.UPSTREAM)
    assert model.group(GROUP).find_instance("muster") is None
    assert late.is_assigned


def test_an_evicted_sentinel_joins_again() -> None:
    model, members, muster = begin()
    take(muster, members)
    model.leave(GROUP, [("", "muster")])
    muster.send(SeatLost(ErrorCode.UNKNOWN_MEMBER_ID))
    assert muster.seat is None
    muster.pass_time(3_100)
    assert muster.is_at(Step.HERE)
    assert muster.seat is not None
    assert muster.has_place(Place.MUSTER)


def test_a_stranger_who_got_in_after_an_eviction_keeps_the_group() -> None:
    model, members, muster = begin()
    take(muster, members)
    model.leave(GROUP, [("", "muster")])
    late = StockMember(model, GROUP, "late")
    late.join()
    muster.send(SeatLost(ErrorCode.UNKNOWN_MEMBER_ID))
    muster.pass_time(10_000)
    assert muster.has_place(Place.UPSTREAM)
    assert not muster.here
    assert [each.client_id for each in muster.move.strangers] == ["late"]


def test_a_muster_whose_seat_another_one_has_gives_up_at_once() -> None:
    model, members, first = begin()
    take(first, members)
    second = MoveDriver(model, uuid="uuid-2")
    second.send(Asked("standby", may_replace=True))
    assert second.is_at(Step.HERE)
    assert second.seat is not None
    first.send(SeatLost(ErrorCode.FENCED_INSTANCE_ID))
    assert first.has_place(Place.UPSTREAM)
    assert model.heartbeat(GROUP, second.seat.member_id, "muster", second.seat.generation) is (
        ErrorCode.NONE
    )


def test_the_sentinel_of_another_muster_is_left_alone() -> None:
    model, members, first = begin()
    take(first, members)
    second = MoveDriver(model, uuid="uuid-2")
    second.send(Asked("an operator"))
    assert second.is_at(Step.UPSTREAM)
    assert "localhost:9092" in second.move.error
    assert first.seat is not None
    assert model.heartbeat(GROUP, first.seat.member_id, "muster", first.seat.generation) is (
        ErrorCode.NONE
    )


def test_a_muster_that_wakes_after_another_took_its_groups_gives_them_up() -> None:
    model, members, first = begin()
    take(first, members)
    second = MoveDriver(model, uuid="uuid-2")
    second.send(Asked("standby", may_replace=True))
    woken = restart(first)
    assert woken.has_place(Place.UPSTREAM)
    assert second.is_at(Step.HERE)


def test_after_a_restart_the_seat_is_taken_again_without_a_pause() -> None:
    _model, members, muster = begin()
    take(muster, members)
    again = restart(muster)
    assert again.is_at(Step.HERE)
    assert again.seat is not None


def test_after_a_long_absence_the_seat_is_taken_again_if_nobody_else_came() -> None:
    model, members, muster = begin()
    take(muster, members)
    model.advance(model.now_ms + 3_600_000)
    assert model.group(GROUP).state == EMPTY
    again = restart(muster)
    again.pass_time(3_100)
    assert again.is_at(Step.HERE)


def test_changed_topics_are_assigned_anew() -> None:
    _model, members, muster = begin()
    take(muster, members)
    seat = muster.seat
    muster.send(TopicsChanged())
    assert muster.is_at(Step.HERE)
    assert muster.seat is not None
    assert seat is not None
    assert muster.seat.generation == seat.generation + 1


def test_a_loss_that_is_heard_of_late_is_not_the_new_seat_s() -> None:
    _model, members, muster = begin()
    take(muster, members)

    def lose(action: Action) -> str:
        if isinstance(action, Sync):
            muster.events.append(SeatLost(ErrorCode.UNKNOWN_MEMBER_ID))
        return ""

    muster.lose = lose
    muster.send(TopicsChanged())
    assert muster.is_at(Step.HERE)
    assert muster.seat is not None


def test_a_group_here_is_not_given_up_because_the_cluster_is_silent() -> None:
    _model, members, muster = begin()
    take(muster, members)
    muster.lose = lambda action: "before" if isinstance(action, (Join, Describe)) else ""
    muster.send(SeatLost(ErrorCode.UNKNOWN_MEMBER_ID))
    muster.pass_time(120_000)
    assert muster.has_place(Place.MUSTER)
    muster.lose = lambda action: ""
    muster.pass_time(20_000)
    assert muster.is_at(Step.HERE)


def test_events_that_a_step_does_not_know_change_nothing() -> None:
    _model, _members, muster = begin()
    before = muster.move
    muster.send(StillHere(0), TopicsChanged(), SeatLost(ErrorCode.FENCED_INSTANCE_ID))
    assert muster.move.step is before.step
    assert muster.has_place(Place.UPSTREAM)
