"""How much one turn of the loop does with a large group, counted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from coordinator.runtime.commands.waiting_members import SLICE
from model.commands import ConsumerGroupHeartbeat, MemberAssignment, SyncGroup
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, MemberId, TopicName
from model.responses import JoinGroupResponse, SyncGroupResponse
from tests.cost.server import CostServer, cost_server
from tests.cost.test_core import ASSIGNMENT, G, ids
from tests.cost.test_core import join as join_classic
from tests.cost.test_starts import AT_REST
from tests.cost.turns import ATOMIC_STEPS_MAX, TURN_STEPS_MAX, Counted, check_law
from tests.sim.cluster.server import CALLER, REBALANCE_TIMEOUT_MS

MEMBERS = 2_000
PARTITIONS = 20_000
CLASSIC_N = 250
CLASSIC_MEMBERS = 9_000
"""There is no limit. What is left for the turn that ends a phase is that each member has another
state: some 5 µs."""
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
            begin, lambda: len(answers) == MEMBERS and not runtime._targets.in_flight
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
            waiting = server.runtime._waiting
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
