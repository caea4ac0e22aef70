"""That the cluster counts as converged only when nothing is left to be done."""

from __future__ import annotations

import random

import pytest

from tests.sim.checkers.convergence import compute_epochs, compute_unconverged
from tests.sim.clients.client import choose_habits
from tests.sim.clients.wire_client import WireClient
from tests.sim.run import check_steady
from tests.sim.world import GROUPS, World

MATCHING_MS = 4_000


def make_world(*said: tuple[str, ...]) -> World:
    """A world without faults, with a member of one group for each subscription."""
    world = World(0)
    world.faults.is_healed = True
    for number, names in enumerate(said):
        habits = choose_habits(random.Random(number), never_acknowledges=False)
        client = WireClient(world, GROUPS[0], f"member-{number}", names, habits)
        world.clients.append(client)
        world.by_member[client.group_id, client.member_id] = client
        client.start()
    return world


def converge(world: World, within_ms: int) -> None:
    end_ms = world.time.now_ms + within_ms
    while (why := compute_unconverged(world)) is not None:
        assert world.time.now_ms < end_ms, why
        world.run_for(100)


@pytest.mark.parametrize("pattern", ["/(foo|later)", "/.*"])
def test_a_pattern_that_is_to_be_resolved_again_is_something_to_do(pattern: str) -> None:
    """Trigger: a member that names the new topic has all of it before the pattern matches it."""
    world = make_world(("later",), (pattern,))
    converge(world, 10_000)
    matching_ends_ms = world.time.now_ms + MATCHING_MS
    world.process._lane_free_at_ms["matching"] = matching_ends_ms
    world.create_topic("later", 3)
    world.run_for(MATCHING_MS - 500)
    before = compute_epochs(world)
    found = compute_unconverged(world)
    assert found is not None
    assert "patterns" in found
    converge(world, 10_000)
    assert world.time.now_ms >= matching_ends_ms
    assert compute_epochs(world) != before
    check_steady(world)
