"""Whether a response has a change the member may not know; other heartbeats can be parked."""

from __future__ import annotations

from dataclasses import replace

from coordinator.core.consumer.pending_changes import compute_members_in_transit, has_pending_change
from model.ids import GroupId, MemberId
from model.log.records import MemberState
from tests.support.core_driver import CoreDriver, G
from tests.support.targets_in_threads import never_quick
from tests.support.virtual.server import VirtualServer


def settled() -> VirtualServer:
    """a@2 owns all partitions of foo."""
    server = VirtualServer({"foo": 2})
    server.join("g", "a", ["foo"])
    server.beat(server.heartbeat("g", "a", 2, owned={"foo": (0, 1)}))
    return server


def test_a_join_is_news() -> None:
    assert VirtualServer({"foo": 2}).join("g", "a", ["foo"]).has_changes


def test_a_heartbeat_that_repeats_what_is_known_is_none() -> None:
    server = settled()
    assert not server.beat(server.heartbeat("g", "a", 2)).has_changes
    full = server.heartbeat("g", "a", 2, sub=["foo"], timeout_ms=60_000, owned={"foo": (0, 1)})
    answer = server.beat(full)
    assert answer.assignment is not None
    assert not answer.has_changes


def test_a_member_that_may_have_missed_an_answer_is_told_again_what_to_give_up() -> None:
    """Bug: its heartbeats had no owned partitions, and others waited for its rebalance timeout."""
    server = settled()
    server.join("g", "b", ["foo"])
    missed = server.beat(server.heartbeat("g", "a", 2))
    assert server.names(missed.assignment) == {"foo": (0,)}
    assert server.beat(server.heartbeat("g", "a", 2)).assignment is None, "as Kafka"
    asked = replace(server.heartbeat("g", "a", 2), wants_assignment=True)
    told = server.beat(asked)
    assert server.names(told.assignment) == {"foo": (0,)}
    assert told.has_changes


def test_an_assignment_that_the_member_does_not_own_yet_is_news() -> None:
    """Trigger: the response that brought it was lost, and the member sends a full heartbeat."""
    server = settled()
    assert server.beat(
        server.heartbeat("g", "a", 2, sub=["foo"], timeout_ms=60_000, owned={"foo": (0,)})
    ).has_changes


def test_two_heartbeats_of_one_batch_both_bring_the_assignment_as_news() -> None:
    """Trigger: the second heartbeat is answered after the first has moved the member."""
    server = settled()
    server.join("g", "b", ["foo"])
    server.beat(server.heartbeat("g", "a", 2))
    server.beat(server.heartbeat("g", "a", 2, owned={"foo": (0,)}))
    # b waits for foo-1, which is free at its current epoch: the target for c is still computed.
    never_quick(server.runtime)
    server.scheduler.computing_ms = lambda: 100
    joining = server.submit(server.join_command("g", "c", ["foo"]))
    both = [server.submit(server.heartbeat("g", "b", 3)) for _ in range(2)]
    server.settle()
    assert joining.is_answered
    first, second = (pending.answer for pending in both)
    assert first == second
    assert second.has_changes  # type: ignore[union-attr]


def test_what_a_member_does_not_subscribe_to_any_more_is_no_news_when_it_is_free() -> None:
    """Bug: a heartbeat brought nothing, but a change was pending again, until the next target."""
    server = VirtualServer({"foo": 4, "bar": 4})
    server.join("g", "a", ["foo"])
    server.join("g", "d", ["bar"])
    server.join("g", "b", ["foo", "bar"])
    kept = server.names(server.beat(server.heartbeat("g", "d", 3)).assignment)
    assert server.names(server.beat(server.heartbeat("g", "a", 2)).assignment) != {}
    never_quick(server.runtime)
    server.scheduler.computing_ms = lambda: 1_000
    server.beat(server.heartbeat("g", "b", 4, sub=["foo"]))
    server.beat(server.heartbeat("g", "d", 3, owned=kept))
    group = server.group("g")
    member = group.member(MemberId("b"))
    assert member is not None
    assert any(group.owner[number] < 0 for number in member.target or ())
    told: list[str] = []
    server.runtime.watch(group.group_id, MemberId("b"), lambda: told.append("b"))
    server.advance(100)
    assert not server.beat(server.heartbeat("g", "b", 4)).has_changes
    assert told == []
    # The member's own heartbeat ended the watch.
    server.runtime.watch(group.group_id, MemberId("b"), lambda: told.append("b"))
    server.advance(1_000)
    assert told == ["b"]


def test_a_topic_that_is_gone_is_news_for_a_member_that_waits_for_partitions() -> None:
    """Bug: a heartbeat would revoke the partitions, but a watching session never sent one."""
    core = CoreDriver()
    core.create_topic("foo", 2)
    core.create_topic("bar", 1)
    for name in ("a", "b"):
        core.join(name, ("foo", "bar"))
        core.adopt(name)
    core.grow_topic("foo", 1)
    core.revoke("b")
    core.heartbeat("b", says_owned=True)
    core.are_targets_late = True
    waiting = core.shard.consumer_groups[G].member(MemberId("b"))
    assert waiting is not None
    assert waiting.state is MemberState.UNRELEASED_PARTITIONS
    assert not has_pending_change(core.shard, G, MemberId("b"))
    core.create_topic("foo", 2)
    assert has_pending_change(core.shard, G, MemberId("b"))
    core.check()


def test_what_a_topic_that_went_takes_is_news_for_who_waits_for_a_pattern() -> None:
    """Bug: a heartbeat would have revoked it, but the watched member was not notified."""
    core = CoreDriver()
    core.create_topic("foo", 2)
    core.join("a", ("foo",))
    core.adopt("a")
    core.are_targets_late = core.are_regexes_late = True
    core.join("a", ("foo", "/ba."))
    assert not has_pending_change(core.shard, G, MemberId("a"))
    core.create_topic("foo", 2)
    assert has_pending_change(core.shard, G, MemberId("a"))
    core.check()


def test_in_transit_are_those_who_give_up_partitions_and_those_who_may_take_them() -> None:
    server = settled()
    shard = next(shard for shard in server.runtime.shards if G in shard.consumer_groups)
    assert compute_members_in_transit(shard, G) == []
    server.join("g", "b", ["foo"])
    server.beat(server.heartbeat("g", "a", 2))
    assert compute_members_in_transit(shard, G) == ["a", "b"]
    server.beat(server.heartbeat("g", "a", 2, owned={"foo": (0,)}))
    assert compute_members_in_transit(shard, G) == ["b"]
    server.beat(server.heartbeat("g", "b", 3))
    assert compute_members_in_transit(shard, G) == []
    assert compute_members_in_transit(shard, GroupId("none")) == []
