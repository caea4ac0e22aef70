"""How much one turn of the loop does with a large group, counted."""

from __future__ import annotations

from pathlib import Path

from model.commands import ConsumerGroupHeartbeat
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, MemberId, TopicName
from tests.cost.server import cost_server
from tests.cost.turns import TURN_STEPS_MAX
from tests.sim.cluster.server import CALLER, REBALANCE_TIMEOUT_MS

MEMBERS = 2_000
PARTITIONS = 20_000
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
