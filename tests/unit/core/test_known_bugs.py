"""Known bugs of other coordinators, each by its trigger (with its KAFKA issue, if any)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from model.caller import INTERNAL
from model.commands.consumer import ConsumerGroupLeave
from model.commands.topics import CreateTopic, GrowTopic
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, MemberId, TopicName
from tests.support.virtual.server import CALLER, VirtualServer, error_name, make_topic_id

OUT_OF_LINE = CoordinatorSettings(assignor_inline_budget_ms=0)


def holders(server: VirtualServer) -> dict[str, set[int]]:
    """The owners of foo's partitions, assigned or pending revocation."""
    group = server.group("g")
    topic = server.topic("foo")
    return {
        member.member_id: {
            partition
            for held in (member.assigned, member.pending_revocation)
            for topics in group.numbers.topic_partitions(held)
            if topics.topic_id == topic
            for partition in topics.partitions
        }
        for member in group.members()
    }


def revoking(partitions: int = 2) -> VirtualServer:
    """a@2 must revoke foo-1 (and 3, ...), for which b@3 waits."""
    server = VirtualServer({"foo": partitions})
    server.join("g", "a", ["foo"])
    server.join("g", "b", ["foo"])
    server.beat(server.heartbeat("g", "a", 2))
    a = server.group("g").member("a")
    assert a is not None
    assert a.state.name == "UNREVOKED_PARTITIONS"
    return server


def test_a_partition_given_back_before_its_revocation_was_acknowledged_has_one_owner() -> None:
    """KAFKA-16147: its epoch was dropped, so that a third member got it as well."""
    server = revoking()
    server.leave("g", "b")
    server.join("g", "c", ["foo"])
    server.leave("g", "c")
    server.beat(server.heartbeat("g", "a", 2))
    assert holders(server) == {"a": {0, 1}}
    joined = server.join("g", "d", ["foo"])
    assert server.names(joined.assignment) == {}
    assert holders(server) == {"a": {0, 1}, "d": set()}


def test_an_acknowledgement_in_the_step_that_installs_a_target_counts() -> None:
    """KAFKA-16249: with a new target the owned partitions of the heartbeat were ignored."""
    server = revoking()
    joining = server.submit(server.join_command("g", "c", ["foo"]))
    acknowledging = server.submit(server.heartbeat("g", "a", 2, owned={"foo": (0,)}))
    server.settle()
    assert joining.is_answered
    assert acknowledging.answer.member_epoch == 4  # type: ignore[union-attr]
    assert holders(server)["a"] == {0}


def test_a_newer_target_does_not_begin_the_rebalance_timeout_anew() -> None:
    """KAFKA-16249: each target restarted it, so a member that never revoked was never removed."""
    server = VirtualServer({"foo": 4})
    server.join("g", "a", ["foo"], timeout_ms=10_000)
    for number in range(6):
        server.join("g", f"b{number}", ["foo"])
        server.ask(server.heartbeat("g", "a", 2))
        server.advance(2_000)
    assert "a" not in holders(server)


def test_a_subscription_that_flips_does_not_begin_the_rebalance_timeout_anew() -> None:
    """Trigger: each heartbeat revokes more, and the member acknowledges nothing."""
    server = VirtualServer({"foo": 2, "bar": 2, "baz": 2})
    names = ["foo", "bar", "baz"]
    server.join("g", "a", names, timeout_ms=10_000)
    for gone in ("foo", "bar"):
        names.remove(gone)
        server.beat(server.heartbeat("g", "a", 2, sub=names))
        server.advance(6_000)
    assert not server.group("g").member_count


def test_heartbeats_do_not_shrink_what_is_kept() -> None:
    """Trigger: the assignment is computed again on each heartbeat of a member that revokes."""
    server = revoking(4)
    owned = {"foo": (0, 1, 2, 3)}
    full = server.heartbeat("g", "a", 2, sub=["foo"], timeout_ms=60_000, owned=owned)
    kept = server.names(server.beat(full).assignment)
    for _ in range(5):
        server.beat(server.heartbeat("g", "a", 2, owned=owned))
    assert kept == {"foo": (0, 2)}
    assert holders(server)["a"] == {0, 1, 2, 3}


def test_a_newer_target_is_not_delivered_before_the_revocation_is_acknowledged() -> None:
    """KAFKA-15763."""
    server = revoking(6)
    server.join("g", "c", ["foo"])
    answer = server.beat(server.heartbeat("g", "a", 2))
    assert (answer.member_epoch, answer.assignment) == (2, None)
    answer = server.beat(server.heartbeat("g", "a", 2, owned={"foo": (0, 2, 4)}))
    assert answer.member_epoch == 2
    assert server.names(answer.assignment) == {"foo": (0, 2)}


def test_what_is_in_the_members_own_revocation_is_not_owned_by_another() -> None:
    """KAFKA-19449: assigned again at the acknowledgement, it took one more heartbeat."""
    server = revoking()
    server.leave("g", "b")
    answer = server.beat(server.heartbeat("g", "a", 2, owned={"foo": (0,)}))
    assert (answer.member_epoch, server.names(answer.assignment)) == (4, {"foo": (0, 1)})


@pytest.mark.parametrize("epoch", [1, 9])
def test_a_fenced_member_can_rejoin_with_its_own_id(epoch: int) -> None:
    """KAFKA-19233: epoch 0 was below the known epoch, so the member was fenced for ever."""
    server = revoking()
    assert error_name(server.ask(server.heartbeat("g", "a", epoch))) == "FENCED_MEMBER_EPOCH"
    joined = server.join("g", "a", ["foo"])
    assert (joined.member_epoch, server.names(joined.assignment)) == (3, {"foo": (0,)})


def test_a_partial_request_is_not_answered_as_a_full_one_nor_the_other_way() -> None:
    """KAFKA-16367."""
    server = VirtualServer({"foo": 2})
    server.join("g", "a", ["foo"])
    owned = {"foo": (0, 1)}
    partial = server.heartbeat("g", "a", 2, sub=["foo"], owned=owned)
    assert server.beat(partial).assignment is None
    silent = server.heartbeat("g", "a", 2, sub=["foo"], timeout_ms=60_000)
    assert server.beat(silent).assignment is None, "it does not say what it owns"
    full = server.heartbeat("g", "a", 2, sub=["foo"], owned=owned, timeout_ms=60_000)
    assert server.names(server.beat(full).assignment) == owned


def test_a_commit_of_a_member_that_has_not_seen_its_new_epoch_is_accepted() -> None:
    """KAFKA-20066 (KIP-1251)."""
    server = revoking()
    server.beat(server.heartbeat("g", "a", 2, owned={"foo": (0,)}))
    assert error_name(server.ask(server.commit_command("g", "a", 2, "foo", {0: 7}))) == "NONE"
    assert server.fetch("g", "foo", 0) == 7


def test_a_commit_with_an_epoch_above_the_members_is_stale_too() -> None:
    server = revoking()
    commit = server.commit_command("g", "a", 3, "foo", {0: 7})
    assert error_name(server.ask(commit)) == "STALE_MEMBER_EPOCH"
    assert server.fetch("g", "foo", 0) == -1


def test_heartbeats_while_a_target_is_late_raise_no_epoch_and_write_nothing() -> None:
    """Trigger (KAFKA-20272): heartbeats come often while the target is behind the group epoch."""
    server = VirtualServer({"foo": 2}, settings=OUT_OF_LINE)
    server.join("g", "a", ["foo"])
    server.beat(server.heartbeat("g", "a", 1, owned={}))
    server.scheduler.computing_ms = lambda: 10_000
    server.join("g", "b", ["foo"])
    written = server.runtime.stats.records_written
    for _ in range(5):
        assert server.beat(server.heartbeat("g", "a", 2)).assignment is None
    assert server.group("g").group_epoch == 3
    assert server.runtime.stats.records_written == written
    assert server.runtime.stats.targets_installed == 1


def test_heartbeats_within_the_assignment_interval_raise_no_epoch() -> None:
    settings = CoordinatorSettings(group_consumer_assignment_interval_ms=1_000)
    server = VirtualServer({"foo": 2}, settings=settings)
    server.join("g", "a", ["foo"])
    server.join("g", "b", ["foo"])
    for _ in range(5):
        server.beat(server.heartbeat("g", "a", 2))
        server.advance(10)
    assert server.group("g").group_epoch == 3


def test_a_topic_change_that_a_heartbeat_overtakes_is_not_forgotten() -> None:
    """Trigger: a topic is created while a sync is in flight, and heartbeats continue."""
    server = VirtualServer({"foo": 2})
    server.join("g", "a", ["foo", "later"])
    server.scheduler.blocking_ms = lambda: 50
    server.submit(server.commit_command("g", "a", 2, "foo", {0: 1}))
    server.advance(1)
    server.submit(server.heartbeat("g", "a", 2))
    server.runtime.submit(
        CreateTopic(INTERNAL, TopicName("later"), make_topic_id("later"), 1), lambda _: None
    )
    server.submit(server.heartbeat("g", "a", 2))
    server.advance(200)
    server.scheduler.blocking_ms = lambda: 0
    answer = server.beat(
        server.heartbeat("g", "a", 2, sub=["foo", "later"], owned={"foo": (0, 1)}, timeout_ms=1)
    )
    assert server.names(answer.assignment) == {"foo": (0, 1), "later": (0,)}


def test_a_target_never_changes_without_an_epoch() -> None:
    """Trigger: the client dropped partitions that it did not know, and never got them again."""
    server = VirtualServer({"foo": 2})
    server.join("g", "a", ["foo"])
    seen: dict[int, tuple[int, ...]] = {}
    for partitions in (3, 5, 6):
        server.runtime.submit(GrowTopic(INTERNAL, TopicName("foo"), partitions), lambda _: None)
        server.settle()
        group = server.group("g")
        target = tuple(group.target)
        assert seen.setdefault(group.target_epoch, target) == target
        server.beat(server.heartbeat("g", "a", group.group_epoch - 1))
    assert len(seen) == 3


def test_a_subscription_in_another_order_is_the_same() -> None:
    server = VirtualServer({"foo": 2, "bar": 2})
    server.join("g", "a", ["foo", "bar"])
    for names in (["bar", "foo"], ["foo", "bar", "foo"]):
        assert server.beat(server.heartbeat("g", "a", 2, sub=names)).member_epoch == 2
    assert server.group("g").group_epoch == 2


def test_the_rebalance_timeout_that_counts_is_the_one_that_was_said_last() -> None:
    """Trigger: the heartbeat whose response asks to revoke brings a new rebalance timeout."""
    server = VirtualServer({"foo": 2})
    server.join("g", "a", ["foo"], timeout_ms=60_000)
    server.join("g", "b", ["foo"])
    server.beat(server.heartbeat("g", "a", 2, timeout_ms=5_000))
    server.advance(5_300)
    assert holders(server).keys() == {"b"}


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_a_member_without_subscriptions_gets_nothing_and_breaks_nothing(assignor: str) -> None:
    """KAFKA-16930: the assignor raised."""
    server = VirtualServer({"foo": 2})
    server.beat(server.join_command("g", "a", [], assignor=assignor))
    joined = server.beat(server.join_command("g", "b", ["foo"], assignor=assignor))
    assert server.names(joined.assignment) == {"foo": (0, 1)}
    assert server.runtime.stats.assignor_failures == 0
    server.leave("g", "b")
    server.beat(server.heartbeat("g", "a", 1, owned={}))
    assert server.group("g").state().value == "Stable"


def test_a_balanced_group_is_left_as_it_is() -> None:
    """KAFKA-18688: the owner of the remainder depended on the iteration order."""
    server = VirtualServer({"foo": 5})
    commands = [server.join_command("g", f"m{number}", ["foo"]) for number in range(4)]
    pending = [server.submit(command) for command in commands]
    server.settle()
    before = {answer.answer.member_id: answer.answer.assignment for answer in pending}  # type: ignore[union-attr]
    for number in range(4, 8):
        server.join("g", f"m{number}", [])
        server.leave("g", f"m{number}")
        server.join("g", f"x{number}", ["none"])
        server.leave("g", f"x{number}")
    after = {
        member.member_id: server.group("g").numbers.topic_partitions(member.target or ())
        for member in server.group("g").members()
    }
    assert after == before


def test_a_join_whose_answer_was_lost_leaves_no_ghost() -> None:
    """KAFKA-17116 (KIP-1082): the client generates its member id, and rejoins with it."""
    server = VirtualServer({"foo": 2})
    first = server.join("g", "a", ["foo"])
    second = server.join("g", "a", ["foo"])
    # The client that gets this answer may be another process by now: it has a token of its own.
    assert replace(second, tokens=first.tokens) == first
    assert second.tokens > first.tokens
    assert server.group("g").member_count == 1


def test_an_epoch_below_0_joins_nobody() -> None:
    """KAFKA-19335: two late responses left the client at epoch -1."""
    server = VirtualServer({"foo": 2})
    assert error_name(server.ask(server.heartbeat("g", "a", -1, sub=["foo"]))) == "INVALID_REQUEST"
    assert not list(server.runtime.groups())


def test_all_members_gone_raises_the_group_epoch_alone() -> None:
    """KAFKA-20442: an empty group has no pending target; the next member gets one."""
    server = VirtualServer({"foo": 2})
    server.join("g", "a", ["foo"])
    server.advance(60_000)
    group = server.group("g")
    assert (group.group_epoch, group.target_epoch) == (3, 2)
    assert server.join("g", "b", ["foo"]).member_epoch == 4


def test_a_member_that_left_and_still_speaks_is_unknown_and_may_join_again() -> None:
    """Trigger: the response to a heartbeat arrives while the client leaves, and is dropped."""
    server = VirtualServer({"foo": 2})
    server.join("g", "a", ["foo"])
    server.join("g", "b", ["foo"])
    pending = server.submit(server.heartbeat("g", "a", 2))
    leaving = server.submit(ConsumerGroupLeave(CALLER, GroupId("g"), MemberId("a")))
    server.settle()
    assert pending.is_answered
    assert leaving.is_answered
    late = server.ask(server.heartbeat("g", "a", 2, owned={"foo": (0, 1)}))
    assert error_name(late) == "UNKNOWN_MEMBER_ID"
    assert server.join("g", "a", ["foo"]).member_epoch == 5


def test_who_leaves_while_it_must_revoke_may_join_again() -> None:
    """Trigger: librdkafka left before it had revoked, and its next join was refused for ever."""
    server = revoking()
    server.leave("g", "a")
    joined = server.join("g", "a", ["foo"])
    assert (joined.member_epoch, server.names(joined.assignment)) == (5, {"foo": (1,)})
    assert server.beat(server.heartbeat("g", "b", 3)).member_epoch == 5
    assert holders(server) == {"a": {1}, "b": {0}}


@pytest.mark.parametrize("restarts", [False, True])
def test_a_rebalance_timeout_below_0_passes_at_once(restarts: bool) -> None:
    """Bug: it was never armed, and a member that kept its session kept its partitions.

    Requests with it are refused, but an imported log may have it. After a restart the leases of
    members are not known: no member is removed before the longest has ended.
    """
    server = VirtualServer({"foo": 2})
    server.join("g", "a", ["foo"], timeout_ms=-2)
    server.join("g", "b", ["foo"])
    server.beat(server.heartbeat("g", "a", 2))
    if restarts:
        server.restart(survivors=99)
        for _ in range(2):
            server.advance(server.settings.group_consumer_session_timeout_ms // 2)
            server.beat(server.heartbeat("g", "a", 2))
            server.beat(server.heartbeat("g", "b", 3))
    server.advance(100)
    assert error_name(server.ask(server.heartbeat("g", "a", 2))) == "UNKNOWN_MEMBER_ID"
    server.beat(server.heartbeat("g", "b", 3))
    assert holders(server) == {"b": {0, 1}}
