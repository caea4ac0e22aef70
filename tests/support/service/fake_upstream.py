"""A cluster to stand in front of, as the admin service sees it; groups move when they are asked."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from coordinator.service.admin.upstream.upstream_administration import (
    GroupMove,
    InTheWay,
    UpstreamBroker,
    UpstreamDescription,
    UpstreamGroup,
)
from model.errors import CoordinatorNotAvailable, GroupError, NonEmptyGroup
from model.ids import GroupId
from model.places import Place

DESCRIPTION = UpstreamDescription(
    cluster_id="abc",
    brokers=(
        UpstreamBroker(2, "b2:9092", "r2", "muster:9202"),
        UpstreamBroker(1, "b1:9092", relay_address="muster:9201"),
    ),
    is_reachable=True,
    has_consumer_protocol=False,
    has_topic_ids=True,
    identity="PLAINTEXT",
    offsets_store="upstream",
    node_address="muster:9200",
    release="3.9",
    features={"metadata.version": 21},
)
STRANGER = InTheWay("rdkafka-1", "old", "/10.0.0.7")


@dataclass
class FakeUpstream:
    """Groups ``in_the_way`` cannot be taken; ``held``: moves wait until it is set."""

    description: UpstreamDescription = DESCRIPTION
    groups: dict[GroupId, UpstreamGroup] = field(default_factory=dict)
    in_the_way: set[GroupId] = field(default_factory=set)
    moved: list[tuple[str, GroupId, bool]] = field(default_factory=list)
    held: asyncio.Event | None = None

    def add(self, name: str, place: Place = Place.UPSTREAM, members: int = 1) -> None:
        """A group of the cluster, or one that is here."""
        here = members if place is Place.MUSTER else 0
        group = UpstreamGroup(GroupId(name), place, members_here=here, members_there=members - here)
        self.groups[group.group_id] = group

    async def describe(self) -> UpstreamDescription:
        return self.description

    async def list_group_ids(self, *, whole: bool) -> Sequence[GroupId]:
        if whole and not self.description.is_reachable:
            raise CoordinatorNotAvailable("The cluster cannot be reached.")
        return sorted(self.groups)

    async def describe_groups(self, group_ids: Sequence[GroupId]) -> Sequence[UpstreamGroup]:
        return [self.groups[group_id] for group_id in group_ids]

    def find_places(self) -> Mapping[GroupId, Place]:
        return {
            group_id: group.place
            for group_id, group in self.groups.items()
            if group.place is not Place.UPSTREAM
        }

    async def take(self, group_id: GroupId, *, dry_run: bool) -> GroupMove:
        return await self._move("take", group_id, Place.MUSTER, dry_run)

    async def release(self, group_id: GroupId, *, dry_run: bool) -> GroupMove:
        return await self._move("release", group_id, Place.UPSTREAM, dry_run)

    async def _move(self, verb: str, group_id: GroupId, place: Place, dry_run: bool) -> GroupMove:
        if self.held is not None:
            await self.held.wait()
        self.moved.append((verb, group_id, dry_run))
        before = self.groups.get(group_id, UpstreamGroup(group_id, Place.UPSTREAM))
        error: GroupError | None = None
        after = replace(before, place=place)
        if group_id in self.in_the_way:
            error = NonEmptyGroup("1 member reaches the cluster directly: old (/10.0.0.7)")
            after = replace(before, strangers=(STRANGER,), error="1 member is in the way")
        if not dry_run:
            self.groups[group_id] = after
        return GroupMove(before.place, before if dry_run and error is None else after, error)
