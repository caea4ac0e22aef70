"""Why groups get new epochs, as the server's log and the counters tell it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from coordinator.core.state.epoch_causes import ADMIN_CLIENT_REASON
from coordinator.core.state.outcome import NoteEpochCauses
from coordinator.runtime.rebalance_causes import LINES_PER_SECOND_MAX, RebalanceCauses
from model.commands.configs import AlterGroupConfigs, ConfigChange, ConfigOperation
from model.commands.consumer import LeaveGroup, LeavingMember
from model.commands.groups import RemoveMembers
from model.commands.topics import DeleteTopic, GrowTopic
from model.configs.group_configs import ASSIGNORS, PINS
from model.ids import GroupId, InstanceId, MemberId, TopicName
from model.past.causes import Cause, CauseKind
from tests.support.virtual.server import CALLER, VirtualServer

G = GroupId("g")
FOO = TopicName("foo")
Lines = list[dict[str, object]]


def told(server: VirtualServer, act: Callable[[], object]) -> Lines:
    """The lines about rebalances that an act, and what follows from it, leads to."""
    with capture_logs() as lines:
        act()
        server.settle()
    return [dict(line) for line in lines if line["event"] == "rebalance"]


@pytest.fixture
def server() -> VirtualServer:
    server = VirtualServer({"foo": 4})
    server.join("g", "a", ["foo"])
    return server


def test_a_join_names_the_member_and_its_client(server: VirtualServer) -> None:
    (line,) = told(server, lambda: server.join("g", "b", ["foo"]))
    assert line["cause"] == "member_joined"
    assert (line["group_id"], line["member_id"]) == ("g", "b")
    assert (line["client_id"], line["client_host"]) == (CALLER.client_id, CALLER.client_host)


def test_members_that_join_together_are_one_line(server: VirtualServer) -> None:
    def join() -> None:
        for member in "bcd":
            server.submit(server.join_command("g", member, ["foo"]))

    (line,) = told(server, join)
    assert (line["member_id"], line["causes"]) == ("b", 3)
    assert server.runtime.stats.rebalance_causes["member_joined"] == 4


def test_a_member_that_leaves(server: VirtualServer) -> None:
    (line,) = told(server, lambda: server.leave("g", "a"))
    assert (line["cause"], line["member_id"]) == ("member_left", "a")


def test_a_client_s_reason_is_told_and_cut(server: VirtualServer) -> None:
    leaving = LeavingMember(MemberId("a"), reason="r" * 1_000)
    (line,) = told(server, lambda: server.ask(LeaveGroup(CALLER, G, (leaving,))))
    assert line["reason"] == "r" * 255 + "..."


def test_members_that_are_removed_together_are_one_line(server: VirtualServer) -> None:
    server.join("g", "b", ["foo"])
    leaving = tuple(LeavingMember(MemberId(name)) for name in "ab")
    (line,) = told(server, lambda: server.ask(LeaveGroup(CALLER, G, leaving)))
    assert (line["cause"], line["causes"]) == ("member_left", 2)


@pytest.mark.parametrize(
    ("leaving", "cause"),
    [
        (LeavingMember(None, InstanceId("i")), "administrator"),
        (LeavingMember(MemberId("a"), reason=ADMIN_CLIENT_REASON), "administrator"),
        (LeavingMember(MemberId("a"), reason="the consumer is being closed"), "member_left"),
        (LeavingMember(MemberId("s"), InstanceId("i")), "member_left"),
    ],
)
def test_who_makes_a_member_leave_is_told_where_it_is_known(
    server: VirtualServer, leaving: LeavingMember, cause: str
) -> None:
    server.ask(replace(server.join_command("g", "s", ["foo"]), instance_id=InstanceId("i")))
    (line,) = told(server, lambda: server.ask(LeaveGroup(CALLER, G, (leaving,))))
    assert line["cause"] == cause


def test_an_administrator_removes_members(server: VirtualServer) -> None:
    server.join("g", "b", ["foo"])
    members = tuple(LeavingMember(MemberId(name)) for name in "ab")
    (line,) = told(server, lambda: server.ask(RemoveMembers(CALLER, G, members, "they hang")))
    assert (line["cause"], line["causes"], line["member_id"]) == ("administrator", 2, "a")
    assert line["reason"] == f"{CALLER.principal} removes it: they hang"


def test_a_session_expires(server: VirtualServer) -> None:
    (line,) = told(server, lambda: server.advance(46_000))
    assert (line["cause"], line["member_id"]) == ("session_expired", "a")


def test_a_member_does_not_revoke_in_time() -> None:
    server = VirtualServer({"foo": 2})
    server.join("g", "a", ["foo"], timeout_ms=10_000)
    server.join("g", "b", ["foo"])
    server.beat(server.heartbeat("g", "a", 2))
    (line,) = told(server, lambda: server.advance(11_000))
    assert (line["cause"], line["member_id"]) == ("rebalance_timeout", "a")


def test_a_subscription_changes(server: VirtualServer) -> None:
    server.create("bar", 1)
    heartbeat = server.heartbeat("g", "a", 2, sub=["foo", "bar"], owned={"foo": range(4)})
    (line,) = told(server, lambda: server.beat(heartbeat))
    assert (line["cause"], line["member_id"]) == ("subscription_changed", "a")


def test_an_expression_begins_to_match(server: VirtualServer) -> None:
    joining = replace(server.join_command("g", "b", []), subscribed_topic_regex="ba.*")
    server.submit(joining)
    server.settle()
    lines = told(server, lambda: (server.create("bar", 1), server.advance(60_000)))
    (line,) = [line for line in lines if line["cause"] == "regex_resolved"]
    assert (line["reason"], line["topic"]) == ("ba.*", "bar")


def test_a_topic_is_created_grown_and_deleted(server: VirtualServer) -> None:
    server.join("late", "a", ["bar"])
    (line,) = told(server, lambda: server.create("bar", 1))
    assert (line["group_id"], line["cause"], line["topic"]) == ("late", "topic_created", "bar")
    (line,) = told(server, lambda: server.ask(GrowTopic(CALLER, FOO, 6)))
    assert (line["group_id"], line["cause"], line["topic"]) == ("g", "partitions_added", "foo")
    (line,) = told(server, lambda: server.ask(DeleteTopic(CALLER, FOO)))
    assert (line["group_id"], line["cause"]) == ("g", "topic_deleted")


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [(ASSIGNORS, "range", "assignor_changed"), (PINS, "foo:0=i", "configs_changed")],
)
def test_an_administrator_changes_how_partitions_are_assigned(
    server: VirtualServer, name: str, value: str, kind: str
) -> None:
    change = ConfigChange(name, ConfigOperation.SET, value)
    (line,) = told(server, lambda: server.ask(AlterGroupConfigs(CALLER, G, (change,))))
    assert line["cause"] == kind


def test_more_groups_than_can_be_told_of_are_counted() -> None:
    turns: list[Callable[[], None]] = []
    now_ms, counts = 0, Counter[str]()
    causes = RebalanceCauses(counts, turns.append, lambda: now_ms)

    def note(groups: int) -> Lines:
        for number in range(groups):
            cause = Cause(CauseKind.MEMBER_JOINED)
            causes.note(NoteEpochCauses(GroupId(f"g{number}"), (cause,)))
        with capture_logs() as lines:
            turns.pop()()
        return [dict(line) for line in lines]

    now_ms = 1_000
    assert len(note(LINES_PER_SECOND_MAX + 7)) == LINES_PER_SECOND_MAX
    assert note(1) == []
    now_ms = 2_000
    first, second = note(1)
    assert (first["event"], first["groups"]) == ("rebalances_not_logged", 8)
    assert second["event"] == "rebalance"
    assert counts["member_joined"] == LINES_PER_SECOND_MAX + 9
