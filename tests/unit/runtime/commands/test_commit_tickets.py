"""A commit ticket is valid while the core would accept the commit, and commits as durably."""

from __future__ import annotations

import gc
import weakref

from model.access.acls import Acl, Operation, Permission, ResourcePattern, ResourceType, Rule
from model.caller import ANONYMOUS, INTERNAL
from model.commands.access import CreateAcls, DeleteAcls
from model.commands.classic import (
    ClassicHeartbeat,
    JoinGroup,
    JoinProtocol,
    MemberAssignment,
    SyncGroup,
)
from model.ids import GroupId, MemberId
from model.responses.classic import ClassicHeartbeatResponse, JoinGroupResponse
from tests.support.virtual.server import VirtualServer
from tests.unit.runtime.commands.committer import Committer


def standing_alone() -> tuple[VirtualServer, Committer]:
    server = VirtualServer({"foo": 2})
    return server, Committer(server, "g")


def by_a_member() -> tuple[VirtualServer, Committer]:
    server = VirtualServer({"foo": 2})
    server.join("g", "a", ["foo"])
    server.beat(server.heartbeat("g", "a", 2, owned={"foo": (0, 1)}))
    return server, Committer(server, "g", "a", 2)


def join(member: str) -> JoinGroup:
    """A new member of the classic group, with a session of 10 s."""
    protocols = (JoinProtocol("range", b""),)
    own, group = MemberId(member), GroupId("g")
    return JoinGroup(
        INTERNAL, group, None, own, 10_000, 60_000, "consumer", protocols, requires_member_id=False
    )


def by_a_classic_member() -> tuple[VirtualServer, Committer]:
    """A commit by the only member of a classic group."""
    server = VirtualServer({"foo": 2})
    joining = server.submit(join("a"))
    server.advance(5_000)
    assert isinstance(joining.answer, JoinGroupResponse)
    given = MemberAssignment(MemberId("a"), b"")
    server.ask(SyncGroup(INTERNAL, GroupId("g"), MemberId("a"), 1, (given,)))
    return server, Committer(server, "g", "a", 1)


def is_member(server: VirtualServer) -> bool:
    answer = server.ask(ClassicHeartbeat(INTERNAL, GroupId("g"), MemberId("a"), 1))
    return isinstance(answer, ClassicHeartbeatResponse)


def test_it_is_answered_once_it_is_durable() -> None:
    server, committer = standing_alone()
    server.scheduler.blocking_ms = lambda: 200
    assert committer.commit(1, 77)
    server.advance(199)
    assert committer.released == 0
    server.advance(1)
    assert committer.released == 1
    assert server.fetch("g", "foo", 1) == 77


def test_nothing_of_it_is_kept_once_it_is_answered() -> None:
    """Bug: until the next sync the last one's callbacks held connections that had gone."""
    server, committer = standing_alone()
    assert committer.commit(0, 1)
    server.settle()
    assert committer.released == 1
    held = weakref.ref(committer)
    del committer
    gc.collect()
    assert held() is None


def test_what_was_not_answered_may_be_lost_and_what_was_is_there_after_a_crash() -> None:
    server, committer = standing_alone()
    assert committer.commit(0, 1)
    server.settle()
    server.scheduler.blocking_ms = lambda: 200
    assert committer.commit(0, 2)
    server.advance(100)
    server.restart()
    assert committer.released == 1
    assert server.fetch("g", "foo", 0) == 1


def test_it_and_commands_are_written_in_the_order_of_their_arrival() -> None:
    server, committer = standing_alone()
    assert committer.commit(0, 1)
    server.submit(server.commit_command("g", "", None, "foo", {0: 2, 1: 2}))
    assert committer.commit(0, 3)
    server.settle()
    assert (server.fetch("g", "foo", 0), server.fetch("g", "foo", 1)) == (3, 2)
    assert committer.released == 2


def test_it_is_answered_before_a_revocation_that_came_after_it() -> None:
    """Whoever hears that the right is revoked has heard of every commit that was allowed."""
    server, committer = standing_alone()
    server.scheduler.blocking_ms = lambda: 10
    rule = Rule(ANONYMOUS, "*", Operation.READ, Permission.ALLOW)
    acl = Acl(ResourcePattern(ResourceType.GROUP, "g"), rule)
    server.runtime.submit(CreateAcls(INTERNAL, (acl,)), lambda answer: None)
    server.advance(30)
    assert committer.commit(0, 1)
    heard: list[int] = []
    server.runtime.submit(
        DeleteAcls(INTERNAL, (acl,)), lambda answer: heard.append(committer.released)
    )
    server.advance(30)
    assert heard == [1]


def test_a_partition_that_is_not_there_needs_a_command() -> None:
    _, committer = standing_alone()
    assert not committer.commit(2, 1)
    assert not committer.commit(-1, 1)


def test_it_dies_when_the_group_gets_a_member() -> None:
    server, committer = standing_alone()
    server.join("g", "a", ["foo"])
    assert not committer.commit(0, 1)


def test_it_dies_with_any_change_of_the_group_and_with_no_other() -> None:
    server, committer = by_a_member()
    server.join("other", "b", ["foo"])
    assert committer.commit(0, 1)
    server.settle()
    assert committer.commit(0, 2)
    server.join("g", "b", ["foo"])
    assert not committer.commit(0, 3)


def test_it_dies_with_any_change_of_topics() -> None:
    server, committer = standing_alone()
    server.create("bar", 1)
    assert not committer.commit(0, 1)


def test_there_is_none_where_each_commit_has_to_be_looked_at() -> None:
    server, _ = by_a_member()
    ticket_of = server.runtime.commit_ticket
    assert ticket_of(server.commit_command("g", "nobody", 2, "foo", {0: 1})) is None
    assert ticket_of(server.commit_command("g", "a", 9, "foo", {0: 1})) is None
    assert ticket_of(server.commit_command("g", "a", 2, "absent", {0: 1})) is None
    server.join("g", "b", ["foo"])
    server.beat(server.heartbeat("g", "a", 2, owned={"foo": ()}))
    older = server.commit_command("g", "a", 2, "foo", {0: 1})
    assert ticket_of(older) is None


def test_a_classic_member_that_commits_by_it_stays_in_its_group() -> None:
    server, committer = by_a_classic_member()
    for number in range(4):
        server.advance(6_000)
        assert committer.commit(0, number)
    assert is_member(server)
    server.advance(11_000)
    assert not committer.commit(0, 9), "it is gone"
    assert not is_member(server)
    assert server.fetch("g", "foo", 0) == 3


def test_it_dies_when_a_classic_group_rebalances() -> None:
    server, committer = by_a_classic_member()
    server.submit(join("b"))
    assert not committer.commit(0, 1)
    command = server.commit_command("g", "a", 1, "foo", {0: 1})
    assert server.runtime.commit_ticket(command) is None


async def test_it_is_dead_once_the_server_stops() -> None:
    server, committer = standing_alone()
    await server.runtime.stop()
    assert not committer.commit(0, 1)
