"""When and where targets are computed, and how late ones and failures are handled."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from coordinator.core.state.group_epochs import LONGEST_INTERVAL_MS, compute_interval_of_size_ms
from coordinator.runtime.runtime import Runtime
from model.caller import INTERNAL
from model.commands.configs import AlterGroupConfigs, ConfigChange, ConfigOperation
from model.commands.consumer import ConsumerGroupHeartbeat
from model.commands.groups import DeleteGroup
from model.commands.topics import CreateTopic
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, MemberId, TopicName
from muster.assignors import registry
from tests.support.memory import MemoryLogStore
from tests.support.virtual.server import CALLER, VirtualServer, make_topic_id

OUT_OF_LINE = CoordinatorSettings(assignor_inline_budget_ms=0)


def epochs(server: VirtualServer) -> tuple[int, int]:
    group = server.group("g")
    return group.group_epoch, group.target_epoch


def test_a_lone_join_is_answered_with_its_partitions() -> None:
    server = VirtualServer({"foo": 2})
    joined = server.join("g", "a", ["foo"])
    assert (joined.member_epoch, server.names(joined.assignment)) == (2, {"foo": (0, 1)})


def test_many_joins_of_one_flush_make_one_target() -> None:
    server = VirtualServer({"foo": 4})
    joins = [server.submit(server.join_command("g", f"m{n}", ["foo"])) for n in range(4)]
    server.settle()
    assert server.runtime.stats.targets_installed == 1
    assert epochs(server) == (5, 5)
    given = [server.names(pending.answer.assignment) for pending in joins]  # type: ignore[union-attr]
    assert sorted(given, key=str) == [{"foo": (p,)} for p in range(4)]


def test_a_budget_of_0_computes_every_target_in_the_thread() -> None:
    """Bug: a target that took 0 ms, and a group's first one, were within a budget of 0."""
    server = VirtualServer({"foo": 2}, settings=OUT_OF_LINE)
    server.scheduler.computing_ms = lambda: 100
    joined = server.join("g", "a", ["foo"])
    assert (joined.member_epoch, joined.assignment) == (1, ())
    assert server.runtime.parts.targets.in_flight == 1
    server.advance(100)
    assert epochs(server) == (2, 2)
    server.join("g", "b", ["foo"])
    assert epochs(server) == (3, 2)


def test_the_old_target_stays_in_force_while_the_next_is_computed() -> None:
    server = VirtualServer({"foo": 2}, settings=OUT_OF_LINE)
    server.join("g", "a", ["foo"])
    server.beat(server.heartbeat("g", "a", 1, owned={}))
    server.scheduler.computing_ms = lambda: 100
    joined = server.join("g", "b", ["foo"])
    assert (joined.member_epoch, joined.assignment) == (2, ())
    assert server.beat(server.heartbeat("g", "a", 2)).assignment is None
    server.advance(100)
    assert server.names(server.beat(server.heartbeat("g", "a", 2)).assignment) == {"foo": (0,)}


def test_a_target_is_installed_at_the_epoch_it_was_computed_for_and_the_next_one_begins() -> None:
    server = VirtualServer({"foo": 2}, settings=OUT_OF_LINE)
    server.scheduler.computing_ms = lambda: 100
    server.join("g", "a", ["foo"])
    server.advance(50)
    server.join("g", "b", ["foo"])
    server.advance(50)
    assert epochs(server) == (3, 2)
    server.advance(100)
    assert epochs(server) == (3, 3)


def test_a_late_target_gives_nothing_to_who_has_left_or_unsubscribed() -> None:
    server = VirtualServer({"foo": 4, "bar": 2}, settings=OUT_OF_LINE)
    server.scheduler.computing_ms = lambda: 100
    for member in ("a", "b", "c"):
        server.join("g", member, ["foo"])
    server.advance(150)
    server.leave("g", "a")
    server.beat(server.heartbeat("g", "b", 1, sub=["bar"]))
    server.advance(50)
    group = server.group("g")
    assert epochs(server) == (6, 4)
    targets_now = {m.member_id: len(m.target or ()) for m in group.members()}
    assert targets_now[MemberId("b")] == 0
    server.advance(100)
    assert {m.member_id: len(m.target or ()) for m in group.members()} == {"b": 2, "c": 4}


def test_what_a_late_target_gives_to_a_pattern_that_has_changed_since_is_given_to_others() -> None:
    """Bug: the new expression matched nothing and bumped no epoch; the partitions had no owner."""
    server = VirtualServer({"foo": 6}, settings=OUT_OF_LINE)
    server.join("g", "b", ["foo"])
    joined = server.beat(replace(server.join_command("g", "a", []), subscribed_topic_regex="fo+"))
    server.advance(5_000)
    server.scheduler.computing_ms = lambda: 100
    server.join("g", "c", ["foo"])
    server.beat(
        replace(
            server.heartbeat("g", "a", joined.member_epoch),
            owned=None,
            subscribed_topic_regex="none",
        )
    )
    server.advance(5_000)
    given = {m.member_id: len(m.target or ()) for m in server.group("g").members()}
    assert given == {"a": 0, "b": 3, "c": 3}


def test_a_late_target_of_a_group_that_is_empty_is_dropped() -> None:
    server = VirtualServer({"foo": 4}, settings=OUT_OF_LINE)
    server.scheduler.computing_ms = lambda: 100
    server.join("g", "a", ["foo"])
    server.leave("g", "a")
    server.advance(100)
    assert epochs(server) == (3, 1)
    server.join("g", "b", ["foo"])
    server.advance(100)
    assert epochs(server) == (4, 4)


def test_at_most_one_target_within_the_interval() -> None:
    settings = CoordinatorSettings(group_consumer_assignment_interval_ms=1_000)
    server = VirtualServer({"foo": 4}, settings=settings)
    assert server.join("g", "a", ["foo"]).member_epoch == 2
    server.advance(100)
    assert server.join("g", "b", ["foo"]).member_epoch == 2
    server.advance(400)
    assert server.join("g", "c", ["foo"]).member_epoch == 2
    assert epochs(server) == (4, 2)
    server.advance(499)
    assert epochs(server) == (4, 2)
    server.advance(1)
    assert epochs(server) == (4, 4)
    assert server.runtime.stats.targets_installed == 2


def test_the_interval_is_waited_for_after_a_restart_as_well() -> None:
    settings = CoordinatorSettings(group_consumer_assignment_interval_ms=1_000)
    server = VirtualServer({"foo": 4}, settings=settings)
    server.join("g", "a", ["foo"])
    server.join("g", "b", ["foo"])
    server.restart()
    assert epochs(server) == (3, 3)


def test_members_of_a_large_group_that_join_together_share_a_target() -> None:
    """Nobody has set an interval: a member with 3,000 partitions rests for 101 ms."""
    server = VirtualServer({"foo": 3_000})
    joined = [server.join("g", name, ["foo"]) for name in ("a", "b", "c")]
    assert [answer.member_epoch for answer in joined] == [2, 2, 2]
    assert epochs(server) == (4, 2)
    server.advance(compute_interval_of_size_ms(1, 3_000) - 1)
    assert epochs(server) == (4, 2)
    server.advance(1)
    assert epochs(server) == (4, 4)
    assert server.runtime.stats.targets_installed == 2
    server.advance(LONGEST_INTERVAL_MS)
    assert server.join("g", "d", ["foo"]).member_epoch == 5
    server.leave("g", "a")
    assert epochs(server) == (6, 5)


def test_a_target_that_is_dated_ahead_delays_the_next_one_by_the_interval() -> None:
    """A group imported from a broker whose clock was an hour ahead."""
    server = VirtualServer({"foo": 3_000})
    server.join("g", "a", ["foo"])
    server.group("g").assignment_timestamp += 3_600_000
    server.join("g", "b", ["foo"])
    server.advance(LONGEST_INTERVAL_MS)
    assert epochs(server) == (3, 3)


def set_interval(server: VirtualServer, interval_ms: int | None) -> None:
    operation = ConfigOperation.DELETE if interval_ms is None else ConfigOperation.SET
    value = None if interval_ms is None else str(interval_ms)
    change = ConfigChange("consumer.assignment.interval.ms", operation, value)
    server.submit(AlterGroupConfigs(INTERNAL, GroupId("g"), (change,)))
    server.settle()


def test_an_interval_that_becomes_shorter_ends_the_wait_for_the_longer_one() -> None:
    server = VirtualServer({"foo": 3_000})
    set_interval(server, 15_000)
    server.join("g", "a", ["foo"])
    server.join("g", "b", ["foo"])
    assert epochs(server) == (3, 2)
    set_interval(server, None)
    assert epochs(server) == (3, 2)
    server.advance(LONGEST_INTERVAL_MS)
    assert epochs(server) == (3, 3)


def test_a_deleted_group_leaves_no_wait_to_the_next_one_of_its_name() -> None:
    settings = CoordinatorSettings(group_consumer_assignment_interval_ms=1_000)
    server = VirtualServer({"foo": 4}, settings=settings)
    server.join("g", "a", ["foo"])
    server.join("g", "b", ["foo"])
    server.leave("g", "a")
    server.leave("g", "b")
    server.submit(DeleteGroup(INTERNAL, GroupId("g")))
    server.advance(500)
    server.join("g", "c", ["foo"])
    server.join("g", "d", ["foo"])
    server.advance(999)
    assert epochs(server) == (3, 2)
    server.advance(1)
    assert epochs(server) == (3, 3)


@pytest.mark.parametrize(
    ("members", "partitions", "interval_ms"),
    [(0, 0, 0), (14, 49, 0), (14, 50, 25), (10, 1_000, 50), (1_000, 2_000, 500)],
)
def test_the_interval_grows_with_the_group(members: int, partitions: int, interval_ms: int) -> None:
    assert compute_interval_of_size_ms(members, partitions) == interval_ms


@contextmanager
def failing_uniform(
    monkeypatch: pytest.MonkeyPatch, server: VirtualServer, failures: int
) -> Iterator[None]:
    uniform = registry.ASSIGNORS["uniform"]
    left = iter(range(failures))

    def assign(problem: object) -> object:
        if next(left, None) is not None:
            raise RuntimeError("no answer")
        return uniform.assign(problem)  # type: ignore[arg-type]

    broken = {**registry.ASSIGNORS, "uniform": replace(uniform, assign=assign)}
    with monkeypatch.context() as patched:
        patched.setattr(server.runtime.parts.targets._assignments, "_assignors", broken)
        yield


@pytest.mark.parametrize("budget_ms", [0, 5])
def test_an_assignor_that_fails_leaves_the_target_and_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, budget_ms: int
) -> None:
    server = VirtualServer(
        {"foo": 2}, settings=CoordinatorSettings(assignor_inline_budget_ms=budget_ms)
    )
    with failing_uniform(monkeypatch, server, 1):
        assert server.join("g", "a", ["foo"]).member_epoch == 1
        assert server.runtime.stats.assignor_failures == 1
        assert epochs(server) == (2, 1)
        server.beat(server.heartbeat("g", "a", 1))
        assert epochs(server) == (2, 2)


async def test_a_target_that_comes_after_the_end_is_dropped() -> None:
    """Bug: it was written to a closed store, and a clean stop ended as a failed write."""
    failures: list[BaseException] = []
    uniform = registry.ASSIGNORS["uniform"]

    def assign(problem: object) -> object:
        while not runtime._serving.is_stopping:
            time.sleep(0.001)
        time.sleep(0.05)
        return uniform.assign(problem)  # type: ignore[arg-type]

    slow = {**registry.ASSIGNORS, "uniform": replace(uniform, assign=assign)}
    store = MemoryLogStore(1)
    runtime = Runtime(store, OUT_OF_LINE, assignors=slow, on_failure=failures.append)
    await runtime.start()
    await runtime.loaded()
    await runtime.call(CreateTopic(INTERNAL, TopicName("foo"), make_topic_id("foo"), 2))
    names = (TopicName("foo"),)
    await runtime.call(
        ConsumerGroupHeartbeat(CALLER, GroupId("g"), MemberId("a"), 0, 60_000, names, owned=())
    )
    assert runtime.parts.targets.in_flight == 1
    await runtime.stop()
    store.close()
    await asyncio.sleep(0.01)
    assert runtime.parts.targets.in_flight == 0
    assert failures == []
