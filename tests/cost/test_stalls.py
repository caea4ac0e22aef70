"""How much one turn of the loop does with a large group, counted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from model.commands import ConsumerGroupHeartbeat
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, MemberId, TopicName
from model.responses import JoinGroupResponse
from tests.cost.server import cost_server
from tests.cost.test_core import join as join_classic
from tests.cost.test_starts import AT_REST
from tests.cost.turns import ATOMIC_STEPS_MAX, TURN_STEPS_MAX
from tests.sim.cluster.server import CALLER, REBALANCE_TIMEOUT_MS

MEMBERS = 2_000
PARTITIONS = 20_000
CLASSIC_MEMBERS = 4_000
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


def test_the_end_of_a_join_phase_of_thousands_is_no_stall(tmp_path: Path) -> None:
    """All that is done before an answer is encoded, in one turn."""
    with cost_server(tmp_path, settings=AT_REST) as server:
        answers: list[object] = []
        new = replace(join_classic("new"), member_id=None, requires_member_id=False)
        for number in range(CLASSIC_MEMBERS):
            member = replace(new, new_member_id=MemberId(f"m{number}"))
            server.runtime.submit(member, answers.append)
        counted = server.loop.count(lambda: None, lambda: len(answers) == CLASSIC_MEMBERS)
        assert all(isinstance(answer, JoinGroupResponse) for answer in answers)
    assert counted.longest <= ATOMIC_STEPS_MAX, counted
