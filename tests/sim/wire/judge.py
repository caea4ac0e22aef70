"""Judges owners from the outside: by what each application believes, and when, by its own clock.

S2: no two applications believe that they own a partition. L12: a partition to which a live member
subscribes is read within the session timeout plus a bound. S30: who did what it had to is not
removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from model.ids import GroupId, InstanceId, MemberId
from tests.sim.checkers.violations import check
from tests.support.shadow import Place

if TYPE_CHECKING:
    from tests.sim.wire.member import Member
    from tests.sim.wire.world import WireWorld

SLACK_MS = 10_000
PATIENCE_MS = 12_000
"""What a client may wait on a connection that has fallen silent."""
HEALTHY = 0.85
"""The part of a deadline within which nobody is removed."""

Wanted = tuple[GroupId, str, int]


class Judge:
    """Of one world."""

    def __init__(self, world: WireWorld) -> None:
        self._world = world
        self._owners: dict[tuple[GroupId, Place], Member] = {}
        self._unread_since: dict[Wanted, int] = {}

    # ------------------------------------------------------------------------------ two owners

    def gain(self, member: Member, places: set[Place]) -> None:
        """S2: a member begins to read these."""
        for place in sorted(places):
            other = self._owners.get((member.group, place))
            if other is not None and other is not member and place in other.owned:
                check(
                    not (other.believes and member.believes),
                    "S2",
                    f"{place} is read by {other} and by {member}",
                )
            if member.believes:
                self._owners[member.group, place] = member

    def check_owners(self) -> None:
        """S2, over all that anybody believes now."""
        owners: dict[tuple[GroupId, Place], Member] = {}
        for member in self._world.members:
            if not member.believes:
                continue
            for place in member.owned:
                other = owners.setdefault((member.group, place), member)
                if other is not member:
                    check(False, "S2", f"{place} is read by {other} and by {member}")

    # ------------------------------------------------------------------------------ nobody reads

    def look(self) -> None:
        """Note which partitions nobody reads, and since when."""
        world = self._world
        if not world.is_up:
            return
        self.check_owners()
        self._check_subscriptions()
        read: set[Wanted] = set()
        wanted: set[Wanted] = set()
        names = world.topic_names
        for member in world.members:
            if not member.is_live:
                continue
            for name, count in world.partitions_of(member.topics).items():
                wanted.update((member.group, name, number) for number in range(count))
            if not member.believes:
                continue
            for topic_id, number in member.owned:
                name = str(names[topic_id])
                if member.knows_names_only or topic_id == world.topic_id(name):
                    read.add((member.group, name, number))
        now_ms = world.time.now_ms
        since = self._unread_since
        self._unread_since = {each: since.get(each, now_ms) for each in wanted - read}

    def _check_subscriptions(self) -> None:
        """S28: what a member was answered to subscribe to stays until it says something else."""
        for member in self._world.members:
            said = member.acknowledged_topics
            if said is None or member.is_removed or not member.is_live:
                continue
            group = self._world.runtime.shard_of(member.group).consumer_groups.get(member.group)
            known = None if group is None else group.member(member.member_id)
            if known is not None and known.metadata is not None:
                names = known.metadata.subscribed_topic_names
                if set(names) != set(said):
                    check(False, "S28", f"{member} subscribes to {said}, the server has {names}")

    @property
    def is_all_read(self) -> bool:
        """As of the last look."""
        return not self._unread_since

    def check_read(self) -> None:
        """L12: nobody waits for ever; what happened lately has its time to be got over."""
        world = self._world
        for what, since_ms in sorted(self._unread_since.items()):
            passed_ms = world.time.now_ms - max(since_ms, world.disturbed_ms)
            check(
                passed_ms < self.bound_ms,
                "L12",
                lambda what=what, passed_ms=passed_ms: (  # type: ignore[misc]
                    f"{what} is read by nobody for {passed_ms} ms: {self.describe(what[0])}"
                ),
            )

    @property
    def bound_ms(self) -> int:
        """The longest session, rebalance and patience of anybody, one after another, and more."""
        members = self._world.members
        session_ms = max((member.session_ms for member in members), default=0)
        rebalance_ms = max((member.rebalance_ms for member in members), default=0)
        return session_ms + rebalance_ms + PATIENCE_MS + SLACK_MS

    def describe(self, group_id: GroupId) -> str:
        """What clients and server have, for people."""
        shard = self._world.runtime.shard_of(group_id)
        group, classic = shard.consumer_groups.get(group_id), shard.classic_group(group_id)
        server = "no group"
        if group is not None:
            server = f"consumer group {group.state().value} {group.group_epoch}: " + ", ".join(
                f"{m.member_id} at {m.member_epoch} {m.state.name} has {list(m.assigned)}"
                for m in group.members()
            )
        elif classic is not None:
            server = (
                f"classic group {classic.state.value} {classic.generation}, led by "
                f"{classic.leader}: {list(classic.members)}"
            )
        live = ", ".join(str(member) for member in self._world.members if member.is_live)
        return f"{server}; clients: {live}"

    # ------------------------------------------------------------------------ healthy members

    def _has_successor(self, member: Member) -> bool:
        """Whether the group has another member of its instance.

        It may be a process that ended before it began: what that had sent came later. Kafka's
        protocols do not tell which of two is the older one.
        """
        if member.instance is None:
            return False
        shard = self._world.runtime.shard_of(member.group)
        group, classic = shard.consumer_groups.get(member.group), shard.classic_group(member.group)
        owners: dict[InstanceId, MemberId] = {}
        if group is not None:
            owners |= group.static_members
        if classic is not None:
            owners |= classic.instances
        return owners.get(InstanceId(member.instance), member.member_id) != member.member_id

    def check_removal(self, member: Member, what: str) -> None:
        """S30: it is told that it is no member; then it was silent, or slow."""
        if member.is_replaced or not member.is_settled_member or self._has_successor(member):
            return
        now_ms = self._world.time.now_ms
        silent_ms, busy_ms = now_ms - member.heard_ms, now_ms - member.calm_ms
        is_healthy = (
            silent_ms < HEALTHY * member.session_ms and busy_ms < HEALTHY * member.rebalance_ms
        )
        check(
            not is_healthy,
            "S30",
            f"{member} was answered {what}, {silent_ms} ms after it was last heard and "
            f"{busy_ms} ms after it was last asked for nothing",
        )
