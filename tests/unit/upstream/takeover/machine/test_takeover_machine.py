"""The machine of a move against the simulated cluster."""

from __future__ import annotations

from dataclasses import replace

import pytest

from model.errors import ErrorCode
from model.places import Place
from tests.sim.upstream.cluster_model import ClusterModel
from tests.sim.upstream.cluster_values import EMPTY, STABLE
from tests.sim.upstream.move_driver import GROUP, MoveDriver
from tests.sim.upstream.stock_member import StockMember
from upstream.takeover.machine.move import HEARD_MAX
from upstream.takeover.machine.takeover_actions import (
    Action,
    Adopt,
    Describe,
    Join,
    LeaveSeat,
    RemoveMembers,
    Sync,
    TurnAway,
)
from upstream.takeover.machine.takeover_events import (
    Asked,
    Heard,
    MemberTimes,
    Released,
    SeatLost,
    StillHere,
    TopicsChanged,
)
from upstream.takeover.machine.takeover_steps import Step


def join_stock(model: ClusterModel, count: int, instance_ids: bool = False) -> list[StockMember]:
    """A stable group of stock members."""
    members = [
        StockMember(model, GROUP, f"stock{i}", instance_id=f"i{i}" if instance_ids else None)
        for i in range(count)
    ]
    for member in members:
        member.join()
    model.advance(model.now_ms + model.initial_delay_ms)
    assert all(member.is_assigned for member in members)
    return members


def begin(count: int = 3) -> tuple[ClusterModel, list[StockMember], MoveDriver]:
    """A stable group whose members all came through a relay."""
    model = ClusterModel()
    members = join_stock(model, count)
    muster = MoveDriver(model)
    muster.known = {member.member_id: MemberTimes() for member in members}
    return model, members, muster


def hear(muster: MoveDriver, members: list[StockMember]) -> None:
    """All members come to Muster's node."""
    muster.send(*(Heard(member.member_id, member.generation) for member in members))


def take(muster: MoveDriver, members: list[StockMember]) -> None:
    muster.send(Asked("an operator"))
    hear(muster, members)
    muster.pass_time(500)
    assert muster.is_at(Step.HERE), muster.move


def test_members_are_adopted_without_the_initial_delay() -> None:
    model, members, muster = begin()
    began_ms = model.now_ms
    muster.send(Asked("an operator"))
    assert muster.has_place(Place.TAKING)
    assert muster.is_at(Step.GATHERING)
    hear(muster, members)
    muster.pass_time(300)
    assert muster.is_at(Step.HERE)
    assert model.now_ms - began_ms < 500
    assert muster.adopted is not None
    assert {each.member_id for each in muster.adopted.members} == {m.member_id for m in members}
    assert muster.adopted.generation == members[0].generation
    assert muster.adopted.protocol == "range"
    assert all(each.metadata and each.assignment == b"all" for each in muster.adopted.members)
    assert [each.instance_id for each in model.group(GROUP).members.values()] == ["muster"]
    assert muster.seat is not None
    committed = model.commit(
        GROUP, muster.seat.member_id, "muster", muster.seat.generation, {("orders", 0): 5}
    )
    assert committed is ErrorCode.NONE


def test_a_generation_that_a_client_invents_is_not_adopted() -> None:
    _, members, muster = begin()
    muster.send(Asked("an operator"))
    muster.send(Heard("nobody", 2**31 - 1))
    hear(muster, members)
    muster.pass_time(300)
    assert muster.is_at(Step.HERE)
    assert muster.adopted is not None
    assert muster.adopted.generation == members[0].generation


def test_a_client_may_not_invent_members_without_end() -> None:
    _, members, muster = begin()
    muster.send(Asked("an operator"))
    move = replace(muster.move, heard=frozenset(map(str, range(HEARD_MAX))))
    assert move.hear("one more", -1) is move
    assert move.hear("one more", members[0].generation + 7).heard == move.heard


def test_stock_clients_are_refused_once_the_group_is_here() -> None:
    model, members, muster = begin()
    take(muster, members)
    late = StockMember(model, GROUP, "late")
    late.join()
    assert late.code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_no_member_is_removed_before_all_have_been_heard() -> None:
    model, members, muster = begin()
    muster.send(Asked("an operator"))
    hear(muster, members[:2])
    muster.pass_time(4_000)
    assert muster.is_at(Step.GATHERING)
    assert len(model.group(GROUP).members) == 3
    hear(muster, members[2:])
    muster.pass_time(300)
    assert muster.is_at(Step.HERE)


def test_a_known_member_that_stays_silent_is_given_its_session_timeout() -> None:
    _model, members, muster = begin()
    muster.known[members[2].member_id] = MemberTimes(session_timeout_ms=10_000)
    muster.send(Asked("an operator"))
    hear(muster, members[:2])
    muster.pass_time(9_900)
    assert muster.is_at(Step.GATHERING)
    muster.pass_time(500)
    assert muster.is_at(Step.HERE)


def test_a_stranger_stops_the_take_and_is_named() -> None:
    _model, members, muster = begin()
    del muster.known[members[1].member_id]
    muster.send(Asked("an operator"))
    hear(muster, [members[0], members[2]])
    muster.pass_time(4_900)
    assert muster.is_at(Step.GATHERING)
    muster.pass_time(300)
    assert muster.has_place(Place.UPSTREAM)
    assert muster.is_at(Step.UPSTREAM)
    assert [each.client_id for each in muster.move.strangers] == ["stock1"]
    assert "stock1 (/127.0.0.1)" in muster.move.error
    assert all(member.heartbeat() is ErrorCode.NONE for member in members)
    assert TurnAway() in muster.done


def test_a_member_that_is_not_known_any_more_after_a_restart_is_none() -> None:
    _model, members, muster = begin()
    muster.known.clear()
    muster.send(Asked("an operator"))
    hear(muster, members)
    muster.pass_time(300)
    assert muster.is_at(Step.HERE)


def test_static_members_are_taken() -> None:
    model = ClusterModel()
    members = join_stock(model, 2, instance_ids=True)
    muster = MoveDriver(model)
    muster.known = {member.member_id: MemberTimes() for member in members}
    take(muster, members)
    assert muster.adopted is not None
    assert [each.instance_id for each in muster.adopted.members] == ["i0", "i1"]


def test_an_empty_group_is_taken_after_the_initial_delay() -> None:
    model = ClusterModel()
    muster = MoveDriver(model)
    muster.send(Asked("a member of the consumer protocol"))
    assert muster.is_at(Step.ALONE)
    muster.pass_time(3_000)
    assert muster.is_at(Step.HERE)
    assert muster.adopted is not None
    assert muster.adopted.members == ()


def test_another_protocol_type_stays_in_the_cluster() -> None:
    model, _, muster = begin()
    model.group(GROUP).protocol_type = "connect"
    muster.send(Asked("an operator"))
    assert muster.is_at(Step.UPSTREAM)
    assert "'connect'" in muster.move.error
    assert muster.has_place(Place.UPSTREAM)


def test_the_session_timeout_goes_down_until_it_is_allowed() -> None:
    model, members, muster = begin()
    model.session_max_ms = 60_000
    take(muster, members)
    tried = [each.session_timeout_ms for each in muster.done if isinstance(each, Join)]
    assert tried == [1_800_000, 300_000, 45_000, 45_000]


def test_somebody_quicker_is_waited_for_and_then_the_take_ends() -> None:
    """The members are removed, a stranger joins before the sentinel is alone."""
    model, members, muster = begin()
    quick = StockMember(model, GROUP, "quick")

    def lose(action: Action) -> str:
        if isinstance(action, RemoveMembers):
            quick.join()
        return ""

    muster.lose = lose
    muster.send(Asked("an operator"))
    hear(muster, members)
    muster.pass_time(20_000)
    assert muster.has_place(Place.UPSTREAM)
    assert [each.client_id for each in muster.move.strangers] == ["quick"]
    model.advance(model.now_ms + 60_000)
    assert quick.is_assigned
    assert model.group(GROUP).find_instance("muster") is None


@pytest.mark.parametrize("kind", [Describe, Join, RemoveMembers, Sync])
@pytest.mark.parametrize("when", ["before", "after"])
def test_each_answer_may_be_lost_once(kind: type[Action], when: str) -> None:
    _model, members, muster = begin()
    muster.send(Asked("an operator"))
    lost: list[Action] = []

    def lose(action: Action) -> str:
        if isinstance(action, kind) and not lost:
            lost.append(action)
            return when
        return ""

    muster.lose = lose
    hear(muster, members)
    muster.pass_time(30_000)
    assert lost
    assert muster.is_at(Step.HERE)
    assert muster.adopted is not None
    assert len(muster.adopted.members) == 3


@pytest.mark.parametrize("kind", [Describe, Join, RemoveMembers, Sync, LeaveSeat])
def test_a_cluster_that_never_answers_ends_the_take(kind: type[Action]) -> None:
    _model, members, muster = begin()
    muster.send(Asked("an operator"))
    muster.lose = lambda action: "before" if isinstance(action, kind) else ""
    hear(muster, members)
    muster.pass_time(400_000)
    assert muster.move.step in (Step.UPSTREAM, Step.HERE)


def stop_at(muster: MoveDriver, kind: type[Action], when: str) -> None:
    """From the first action of this kind on nothing more happens: the process has ended."""
    ended: list[Action] = []
    perform = muster._perform

    def end(action: Action) -> list:  # type: ignore[type-arg]
        if ended:
            return []
        if isinstance(action, kind):
            ended.append(action)
            if when == "after":
                perform(action)
            muster.events.clear()
            return []
        return perform(action)

    muster._perform = end  # type: ignore[method-assign]


def restart(muster: MoveDriver) -> MoveDriver:
    again = MoveDriver(muster.model, place=muster.place, here=set(muster.here))
    again.noted_generation = muster.noted_generation
    again.adopted = muster.adopted
    again.start()
    return again


@pytest.mark.parametrize("kind", [Join, RemoveMembers, Sync, Adopt])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_while_taking_ends_in_one_place(kind: type[Action], when: str) -> None:
    model, members, muster = begin()
    stop_at(muster, kind, when)
    muster.send(Asked("an operator"))
    hear(muster, members)
    muster.pass_time(500)
    again = restart(muster)
    again.pass_time(30_000)
    sentinel = model.group(GROUP).find_instance("muster")
    if again.place is Place.MUSTER:
        assert again.is_at(Step.HERE)
        assert sentinel is not None
        assert len(model.group(GROUP).members) == 1
    else:
        assert again.has_place(Place.UPSTREAM)
        assert sentinel is None


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
