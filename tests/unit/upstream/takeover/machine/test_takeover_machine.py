"""The machine of a move takes groups of the simulated cluster."""

from __future__ import annotations

from dataclasses import replace

import pytest

from model.errors import ErrorCode
from model.places import Place
from tests.sim.upstream.cluster_model import ClusterModel
from tests.sim.upstream.move_driver import GROUP, MoveDriver
from tests.sim.upstream.stock_member import StockMember
from tests.support.upstream.move_steps import begin, hear, join_stock, restart, stop_at, take
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
)
from upstream.takeover.machine.takeover_steps import Step


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


def test_a_client_with_the_instance_id_of_sentinels_is_not_thrown_out() -> None:
    model = ClusterModel()
    member = StockMember(model, GROUP, "stock", instance_id="muster")
    member.join()
    model.advance(model.now_ms + model.initial_delay_ms)
    muster = MoveDriver(model)
    muster.known = {member.member_id: MemberTimes()}
    muster.send(Asked("an operator"))
    muster.pass_time(300)
    assert muster.is_at(Step.UPSTREAM)
    assert "has the instance id muster" in muster.move.error
    assert member.member_id in model.group(GROUP).members


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
