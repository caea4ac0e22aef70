"""Groups whose rebalancing an administrator freezes and resumes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Final

from model.commands.freezes import FreezeGroup, ResumeGroup
from model.ids import GroupId
from tests.sim.clients.client import CALLER
from tests.sim.world import GROUPS, World

ONE_SEED_IN: Final = 3
FREEZES: Final = (2, 6)
LASTS_MS: Final = (300, 4_000, 12_000, 25_000)


class Freezes:
    """In some seeds: groups are frozen, and resumed some time later.

    By random numbers of its own, so that the other seeds stay what they are.
    """

    def __init__(self, world: World, at: Callable[[int, Callable[[], None]], None]) -> None:
        self._world = world
        self._at = at
        self._random = Random(f"freezes of {world.seed}")

    def schedule(self, within_ms: int) -> None:
        """Choose when."""
        if self._random.randrange(ONE_SEED_IN):
            return
        for _ in range(self._random.randint(*FREEZES)):
            self._at(self._random.randrange(within_ms), self._freeze)

    def _freeze(self) -> None:
        world = self._world
        if world.faults.is_healed:
            return
        group_id = GroupId(self._random.choice(GROUPS))
        world.faults.note("group frozen")
        world.note("freeze", group_id)
        world.admin(FreezeGroup(CALLER, group_id))
        self._at(self._random.choice(LASTS_MS), partial(self._resume, group_id))

    def _resume(self, group_id: GroupId) -> None:
        self._world.note("resume", group_id)
        self._world.admin(ResumeGroup(CALLER, group_id))
