"""Members that an administrator removes, by member id or by instance, alive or not."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from model.commands.consumer import LeavingMember
from model.commands.groups import RemoveMembers
from model.ids import GroupId, InstanceId, MemberId
from tests.sim.clients.client import CALLER
from tests.sim.world import GROUPS, World

ONE_SEED_IN: Final = 3
REMOVALS: Final = (3, 9)


class Removals:
    """In some seeds: members of groups are removed while they work.

    By random numbers of its own, so that the other seeds stay what they are.
    """

    def __init__(self, world: World, at: Callable[[int, Callable[[], None]], None]) -> None:
        self._world = world
        self._at = at
        self._random = Random(f"removals of {world.seed}")

    def schedule(self, within_ms: int) -> None:
        """Choose when."""
        if self._random.randrange(ONE_SEED_IN):
            return
        for _ in range(self._random.randint(*REMOVALS)):
            self._at(self._random.randrange(within_ms), self._remove)

    def _remove(self) -> None:
        world, random = self._world, self._random
        if world.faults.is_healed:
            return
        group_id = GroupId(random.choice(GROUPS))
        members = self._find_members(group_id)
        chosen = random.sample(members, min(len(members), random.choice((1, 1, 2))))
        if not chosen or random.random() < 0.1:
            # All or none: one that is not there keeps the others.
            chosen.append((MemberId("nobody"), None))
        world.faults.note("member removed")
        world.note("remove", group_id)
        leaving = tuple(self._name(*each) for each in chosen)
        validate_only = random.random() < 0.1
        command = RemoveMembers(CALLER, group_id, leaving, "the simulation", None, validate_only)
        world.admin(command)

    def _find_members(self, group_id: GroupId) -> list[tuple[MemberId, InstanceId | None]]:
        shard = self._world.runtime.shard_of(group_id)
        group = shard.consumer_groups.get(group_id)
        if group is not None:
            return [
                (each.member_id, None if each.metadata is None else each.metadata.instance_id)
                for each in group.members()
            ]
        classic = shard.classic_group(group_id)
        members = () if classic is None else classic.members.values()
        return [(each.member_id, each.instance_id) for each in members]

    def _name(self, member_id: MemberId, instance_id: InstanceId | None) -> LeavingMember:
        """By its member id, by its instance alone, or by both."""
        if instance_id is None:
            return LeavingMember(member_id)
        named = self._random.choice((member_id, None))
        return LeavingMember(named, instance_id)
