"""What is told of a group's rebalances: how each ended, and pages of them."""

from __future__ import annotations

import pytest

from coordinator.runtime.ledger import ledger_reads
from coordinator.runtime.ledger.going_on import GoingOn
from model.caller import INTERNAL
from model.commands.consumer import LeaveGroup, LeavingMember
from model.commands.explain import ExplainRebalances
from model.commands.groups import DeleteGroup
from model.errors import GroupIdNotFound
from model.ids import GroupId, MemberId
from model.past.causes import Cause, CauseKind
from model.past.rebalances import EndedRebalance, Ending, HeldUpBy, UnreadableRebalance
from model.responses.explain import ExplainGroupResponse
from storage import causes_pb2
from storage.causes_codec import encode_causes_key
from tests.support.virtual.server import CALLER, VirtualServer
from tests.unit.runtime.ledger.test_classic_ledger import join, make_server, sync

G = GroupId("g")


def encode_unknown_cause() -> bytes:
    """An entry of a later version."""
    return causes_pb2.Rebalance(cause="of a later version").SerializeToString()


def explain(
    server: VirtualServer, since_ms: int = 0, before: tuple[int, int] | None = None, limit: int = 9
) -> ExplainGroupResponse:
    answer = server.ask(ExplainRebalances(CALLER, G, since_ms, before, limit))
    assert isinstance(answer, ExplainGroupResponse), repr(answer)
    return answer


def told(answer: ExplainGroupResponse) -> list[tuple[int, Ending]]:
    return [(each.rebalance.epoch, each.ending) for each in answer.rebalances]


@pytest.fixture
def server() -> VirtualServer:
    """A group with epochs 2 to 5, ten ms from each to the next; the last one goes on."""
    server = VirtualServer({"foo": 4})
    server.join("g", "a", ["foo"])
    for member in "bcd":
        server.advance(10)
        server.join("g", member, ["foo"])
    server.settle()
    return server


def test_the_last_goes_on_and_the_others_were_overtaken(server: VirtualServer) -> None:
    server.advance(5)
    server.beat(server.heartbeat("g", "a", 2))
    server.advance(20)
    answer = explain(server)
    assert told(answer) == [
        (5, Ending.GOES_ON),
        (4, Ending.OVERTAKEN),
        (3, Ending.OVERTAKEN),
        (2, Ending.CONVERGED),
    ]
    last, third, *_ = answer.rebalances
    assert (last.ended_ms, third.ended_ms) == (None, last.rebalance.at_ms)
    (held,) = last.rebalance.held_up
    assert (held.member_id, held.by, held.took_ms) == ("a", HeldUpBy.REVOKING, 20)
    assert held.client_id == CALLER.client_id


def test_after_a_restart_nobody_knows_how_the_last_ended(server: VirtualServer) -> None:
    server.restart()
    assert told(explain(server, limit=1)) == [(5, Ending.UNKNOWN)]


def test_pages_end_where_the_next_begins(
    server: VirtualServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_reads, "SLICE", 1)
    whole, found, before = explain(server), list[EndedRebalance](), None
    for has_more in (True, False):
        answer = explain(server, before=before, limit=2)
        found += answer.rebalances
        last = answer.rebalances[-1].rebalance
        before = last.at_ms, last.epoch
        assert answer.has_more == has_more
    assert tuple(found) == whole.rebalances


@pytest.mark.parametrize("damaged", [b"\xff", encode_unknown_cause()])
def test_an_entry_that_cannot_be_read_hides_no_other(server: VirtualServer, damaged: bytes) -> None:
    whole = explain(server)
    third = whole.rebalances[1]
    key = encode_causes_key(G, third.rebalance.at_ms, third.rebalance.epoch)
    server.store.write([], causes=[(key, damaged)])
    unreadable = UnreadableRebalance(third.rebalance.at_ms, third.rebalance.epoch)
    found = explain(server).rebalances
    assert found == (whole.rebalances[0], unreadable, *whole.rebalances[2:])
    # A page may end with it.
    page = explain(server, limit=2)
    assert (page.rebalances[-1], page.has_more) == (unreadable, True)


def test_only_what_began_in_a_time(server: VirtualServer) -> None:
    third = explain(server).rebalances[1].rebalance
    assert told(explain(server, since_ms=third.at_ms))[-1] == (4, Ending.OVERTAKEN)
    assert told(explain(server, since_ms=third.at_ms + 1)) == [(5, Ending.GOES_ON)]
    assert told(explain(server, before=(third.at_ms, 0)))[0] == (3, Ending.OVERTAKEN)
    assert told(explain(server, before=(third.at_ms + 1, 0)))[0] == (4, Ending.OVERTAKEN)
    assert told(explain(server, since_ms=third.at_ms + 99)) == []


def test_a_group_that_never_was_is_not_found(server: VirtualServer) -> None:
    answer = server.ask(ExplainRebalances(CALLER, GroupId("h"), 0, None, 9))
    assert isinstance(answer, GroupIdNotFound)
    server.ask(server.commit_command("h", "", None, "foo", {0: 1}))
    answer = server.ask(ExplainRebalances(CALLER, GroupId("h"), 0, None, 9))
    assert answer == ExplainGroupResponse(GroupId("h"), ())


def test_a_classic_group_that_rebalances_is_told_with_whom_it_waits_for() -> None:
    server = make_server()
    join(server, "a")
    sync(server, 1, "a")
    server.advance(10)
    join(server, "b")
    server.advance(500)
    answer = explain(server)
    assert told(answer) == [(2, Ending.GOES_ON), (1, Ending.CONVERGED)]
    current = answer.rebalances[0].rebalance
    assert (current.cause.member_id, current.epoch_before) == ("b", 1)
    (held,) = current.held_up
    assert (held.member_id, held.by, held.took_ms) == ("a", HeldUpBy.JOINING, 501)
    assert told(explain(server, before=(current.at_ms, 0))) == [(1, Ending.CONVERGED)]
    assert told(explain(server, limit=1)) == [(2, Ending.GOES_ON)]
    assert explain(server, limit=1).has_more
    join(server, "a", is_known=True)
    server.advance(300)
    (held,) = explain(server).rebalances[0].rebalance.held_up
    assert (held.member_id, held.by, held.took_ms) == ("a", HeldUpBy.ASSIGNING, 301)
    sync(server, 2, "a", "b")
    assert told(explain(server)) == [(2, Ending.CONVERGED), (1, Ending.CONVERGED)]


def test_nobody_waits_for_a_member_that_is_gone(server: VirtualServer) -> None:
    server.beat(server.heartbeat("g", "a", 2))
    server.leave("g", "a")
    server.advance(20)
    last = explain(server).rebalances[0]
    assert (last.rebalance.epoch, last.ending) == (6, Ending.GOES_ON)
    assert [held.member_id for held in last.rebalance.held_up] == ["b"]


def test_members_that_are_gone_are_forgotten_however_many_come_and_go(
    server: VirtualServer,
) -> None:
    before, after = (GoingOn(Cause(CauseKind.MEMBER_LEFT), 0, 0) for _ in range(2))
    before.asked = dict.fromkeys(map(MemberId, ("a", "e1", "e2", "e3", "e4")), 0)
    after.go_on_from(before, server.group("g"))
    assert list(after.asked) == ["a"]


def test_groups_of_one_id_follow_each_other_while_the_clock_stands_still() -> None:
    server = VirtualServer({"foo": 4})
    for member in "abc":
        server.join("g", member, ["foo"])
        server.settle()
        server.leave("g", member)
        server.settle()
        server.ask(DeleteGroup(CALLER, G))
    found = [
        each.rebalance for each in explain(server).rebalances if isinstance(each, EndedRebalance)
    ]
    joined = [each for each in found if each.cause.kind is CauseKind.MEMBER_JOINED]
    assert [each.cause.member_id for each in joined] == ["c", "b", "a"]
    assert [(each.epoch_before, each.epoch) for each in joined] == [(1, 2)] * 3
    began = [each.at_ms for each in found]
    assert began == sorted(began, reverse=True)
    assert began[0] - began[-1] <= 2


def test_a_classic_group_that_is_made_again_at_once() -> None:
    server = make_server()
    for member in "ab":
        join(server, member)
        sync(server, 1, member)
        server.ask(LeaveGroup(CALLER, G, (LeavingMember(MemberId(member)),)))
        server.ask(DeleteGroup(CALLER, G))
    found = [
        each.rebalance for each in explain(server).rebalances if isinstance(each, EndedRebalance)
    ]
    joined = [each for each in found if each.cause.kind is CauseKind.MEMBER_JOINED]
    assert [each.cause.member_id for each in joined] == ["b", "a"]


def test_a_group_made_again_after_a_restart_is_later_though_the_clock_was_set_back() -> None:
    server = VirtualServer({"foo": 4})
    for _ in range(2):
        server.join("g", "a", ["foo"])
        server.leave("g", "a")
        server.ask(DeleteGroup(INTERNAL, G))
        server.scheduler.wall_offset_ms -= 3_600_000
        server.restart()
    server.join("g", "a", ["foo"])
    assert told(explain(server)) == [(epoch, Ending.CONVERGED) for epoch in (2, 3, 2, 3, 2)]
