"""Takeovers and releases under faults: seeds pass, and what is broken on purpose is found."""

from __future__ import annotations

from typing import ClassVar

from model.errors import ErrorCode
from tests.sim.upstream.move_driver import EMPTY_SUBSCRIPTION
from tests.sim.upstream.muster_group import MusterGroup
from tests.sim.upstream.takeover_world import SimMuster, TakeoverWorld
from upstream.takeover.machine.takeover_steps import Step

SEEDS = 60
SEEDS_OF_BROKEN = 150


def test_seeds_pass() -> None:
    steps: set[Step] = set()
    for seed in range(SEEDS):
        world = TakeoverWorld(seed)
        try:
            world.run()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}\n" + "\n".join(world.trace)) from error
        steps |= world.steps
    # The others are passed within a tick.
    assert steps >= {Step.BESIDE, Step.REMOVING, Step.WAITING, Step.HERE, Step.CHECKING}


def test_the_same_seed_is_the_same_trace() -> None:
    first, second = TakeoverWorld(3), TakeoverWorld(3)
    first.run()
    second.run()
    assert first.trace == second.trace != []


class LeavesEarly(SimMuster):
    """Gives the group back while it still has members here."""

    def _count(self) -> int:
        return 0


class LeavesTheDoorOpen(SimMuster):
    """Its sentinel never keeps stock members out."""

    OWN_PROTOCOLS: ClassVar[dict[str, bytes]] = {"range": EMPTY_SUBSCRIPTION}


class Unfenced(MusterGroup):
    """Commits of whoever is no member any more are made under the sentinel too."""

    def check_commit(self, member_id: str, generation: int) -> ErrorCode:
        return ErrorCode.NONE


def find(make_world: object) -> str:
    for seed in range(SEEDS_OF_BROKEN):
        world: TakeoverWorld = make_world(seed)  # type: ignore[operator]
        try:
            world.run()
        except AssertionError as error:
            return str(error)
    return ""


def test_two_places_are_found() -> None:
    found = find(lambda seed: TakeoverWorld(seed, make_muster=LeavesEarly))
    assert found.startswith("two places")


def test_a_sentinel_that_keeps_nobody_out_is_found() -> None:
    assert find(lambda seed: TakeoverWorld(seed, make_muster=LeavesTheDoorOpen))


def test_commits_without_fencing_are_found() -> None:
    def make(seed: int) -> TakeoverWorld:
        world = TakeoverWorld(seed)
        world.here = Unfenced()
        return world

    assert find(make).startswith("offsets go back")
