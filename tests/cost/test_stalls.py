"""How much one turn of the loop does with a large group, counted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from coordinator.core.deadlines.liveness import LOOKS_MAX
from coordinator.core.replay.group_records import replay
from coordinator.runtime.commands.waiting_members import SLICE
from model.commands.classic import JoinProtocol, MemberAssignment, SyncGroup
from model.commands.consumer import ConsumerGroupHeartbeat
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, MemberId, TopicName
from model.log.records import ClassicGroupMember, GroupMetadataKey, GroupMetadataValue, Record
from model.responses.classic import JoinGroupResponse, SyncGroupResponse
from tests.cost.server import CostServer, cost_server
from tests.cost.test_core import ASSIGNMENT, SUBSCRIPTION, G, ids
from tests.cost.test_core import join as join_classic
from tests.cost.test_starts import AT_REST
from tests.cost.turns import ATOMIC_STEPS_MAX, TURN_STEPS_MAX, Counted, check_law
from tests.support.virtual.server import CALLER, REBALANCE_TIMEOUT_MS

MEMBERS = 2_000
PARTITIONS = 20_000
CLASSIC_N = 250
CLASSIC_MEMBERS = CoordinatorSettings().group_max_size
"""What is left for the turn that ends a phase is that each member has another state: some 5 µs."""
CHANGED = (JoinProtocol("range", SUBSCRIPTION), JoinProtocol("other", SUBSCRIPTION))
SLICE_STEPS_MAX = 3 * TURN_STEPS_MAX // 2
"""Of a slice of a target, with the heartbeats of a turn."""
SHARE_MAX = 0.2
"""Of all that is to be done; without slices nearly all of it is in one turn."""


def join(number: int) -> ConsumerGroupHeartbeat:
    return ConsumerGroupHeartbeat(
        CALLER,
        GroupId("g"),
        MemberId(f"m{number}"),
        0,
        rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
        subscribed_topic_names=(TopicName("foo"),),
        owned=(),
    )


def test_a_target_that_moves_everything_takes_many_short_turns(tmp_path: Path) -> None:
    settings = CoordinatorSettings(group_consumer_assignors=("range",))
    with cost_server(tmp_path, settings=settings) as server:
        server.create(PARTITIONS, "foo")
        runtime = server.runtime
        answers: list[object] = []

        def begin() -> None:
            for number in range(MEMBERS):
                runtime.submit(join(number), answers.append)

        counted = server.loop.count(
            begin, lambda: len(answers) == MEMBERS and not runtime.parts.targets.in_flight
        )
        (group,) = runtime.groups()
        assert group.member_count == MEMBERS
    assert counted.longest <= SLICE_STEPS_MAX, counted
    assert counted.longest <= SHARE_MAX * counted.total, counted


def join_all(server: CostServer, count: int) -> list[object]:
    """So many have joined, and wait for the end of the phase."""
    answers: list[object] = []
    new = replace(join_classic("new"), member_id=None, requires_member_id=False)
    for own in ids(count):
        server.runtime.submit(replace(new, new_member_id=own), answers.append)
    return answers


def test_the_end_of_a_join_phase_of_thousands_is_no_stall(tmp_path: Path) -> None:
    """Bug: 4,000 members were the most; all were answered in the turn that ended it."""
    runs = iter(range(10))

    def measure(count: int) -> Counted:
        with cost_server(tmp_path / str(next(runs)), settings=AT_REST) as server:
            answers = join_all(server, count)
            counted = server.loop.count(lambda: None, lambda: len(answers) == count)
            assert all(isinstance(answer, JoinGroupResponse) for answer in answers)
            return counted

    check_law(measure, CLASSIC_N, CLASSIC_MEMBERS, ATOMIC_STEPS_MAX)


def rest(server: CostServer, count: int, session_timeout_ms: int = 45_000) -> None:
    """A stable group of so many, whose sessions end together."""
    members = tuple(
        ClassicGroupMember(
            own, None, "c", "/1", 60_000, session_timeout_ms, SUBSCRIPTION, ASSIGNMENT
        )
        for own in ids(count)
    )
    value = GroupMetadataValue("consumer", 3, "range", ids(1)[0], 5, members)
    replay(server.runtime._shard_of(G), Record(GroupMetadataKey(G), value))


@pytest.mark.parametrize("late", [1, 2, 3])
def test_a_join_phase_that_thousands_miss_is_no_stall(tmp_path: Path, late: int) -> None:
    """Bug: they were removed in the turn that answered the others: 5,900 members were the most."""
    runs = iter(range(10))

    def measure(count: int) -> Counted:
        with cost_server(tmp_path / str(next(runs)), settings=AT_REST) as server:
            rest(server, count)
            answers: list[object] = []
            here = ids(count)[count * late // 4 :]
            for own in here:
                changed = replace(join_classic(own), protocols=CHANGED)
                server.runtime.submit(changed, answers.append)
            counted = server.loop.count(lambda: None, lambda: len(answers) == len(here))
            assert all(isinstance(answer, JoinGroupResponse) for answer in answers)
            assert len(server.runtime._shard_of(G).soft.live_classic_groups[G].members) == len(here)
            return counted

    check_law(measure, 4 * CLASSIC_N, CLASSIC_MEMBERS, ATOMIC_STEPS_MAX)


def test_a_sync_phase_that_thousands_miss_is_no_stall(tmp_path: Path) -> None:
    runs = iter(range(10))

    def measure(count: int) -> Counted:
        with cost_server(tmp_path / str(next(runs)), settings=AT_REST) as server:
            answers = join_all(server, count)
            server.loop.run_while(lambda: len(answers) < count)
            live = server.runtime._shard_of(G).soft.live_classic_groups
            return server.loop.count(lambda: None, lambda: not live[G].members)

    check_law(measure, CLASSIC_N, CLASSIC_MEMBERS, ATOMIC_STEPS_MAX)


def test_sessions_of_thousands_that_end_together_are_no_stall(tmp_path: Path) -> None:
    """Bug: all of a large group were put out in one turn, at each start without its clients."""
    runs = iter(range(10))

    def measure(count: int) -> Counted:
        with cost_server(tmp_path / str(next(runs)), settings=AT_REST) as server:
            rest(server, count)
            shard = server.runtime._shard_of(G)
            now_ms = server.scheduler.monotonic_ms()
            sessions = [(own, 45_000) for own in ids(count)]
            server.runtime.liveness.begin_classic_sessions(G, sessions, now_ms)
            server.runtime.parts.timers.arm()

            def is_empty() -> bool:
                group = shard.classic_group(G)
                return group is None or not group.members

            return server.loop.count(lambda: None, is_empty)

    check_law(measure, 3 * LOOKS_MAX, CLASSIC_MEMBERS, ATOMIC_STEPS_MAX)


def test_consumers_that_end_together_are_no_stall(tmp_path: Path) -> None:
    runs = iter(range(10))

    def measure(count: int) -> Counted:
        with cost_server(tmp_path / str(next(runs)), settings=AT_REST) as server:
            server.create(1, "foo")
            server.call_all(join(number) for number in range(count))
            return server.loop.count(
                lambda: None, lambda: not any(each.member_count for each in server.runtime.groups())
            )

    check_law(measure, LOOKS_MAX, MEMBERS, ATOMIC_STEPS_MAX)


def test_the_assignments_of_thousands_are_no_stall(tmp_path: Path) -> None:
    """Bug: 2,600 members were the most."""
    runs = iter(range(10))

    def measure(count: int) -> Counted:
        with cost_server(tmp_path / str(next(runs)), settings=AT_REST) as server:
            answers = join_all(server, count)
            server.loop.run_while(lambda: len(answers) < count)
            answers.clear()
            generation = server.runtime._shard_of(G).soft.live_classic_groups[G].generation
            sync = SyncGroup(CALLER, G, ids(1)[0], generation, ())
            waiting = server.runtime.parts.waiting
            for own in ids(count)[1:]:
                server.runtime.submit(replace(sync, member_id=own), answers.append)
            server.loop.run_while(lambda: len(waiting) < count - 1)
            given = tuple(MemberAssignment(own, ASSIGNMENT) for own in ids(count))
            leads = replace(sync, assignments=given)
            counted = server.loop.count(
                lambda: server.runtime.submit(leads, answers.append), lambda: len(answers) == count
            )
            assert all(isinstance(answer, SyncGroupResponse) for answer in answers)
            return counted

    small, _, large = check_law(measure, CLASSIC_N, CLASSIC_MEMBERS, ATOMIC_STEPS_MAX)
    assert large.turns >= small.turns + 3 * CLASSIC_N // SLICE, "in slices"
