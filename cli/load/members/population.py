"""The groups and members of one process: who is on which connection, who leaves and joins."""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic_ns
from typing import Final, Protocol

from cli.load.figures.recorder import Recorder
from cli.load.members.classic_member import ClassicCrew, ClassicMember
from cli.load.members.commit_call import CommitCall
from cli.load.members.consumer_member import ConsumerMember
from cli.load.members.group import Group
from cli.load.members.member import Member
from cli.load.options.plan import GroupProtocol, GroupShare, Plan, Share, Workload
from cli.load.wire.lane import Call, Lane

_RETRY_NS: Final = 100_000_000


class Crew(ClassicCrew, Protocol):
    """What the population needs of the process."""

    def renew(self, lane: Lane, on_open: Callable[[], None]) -> None:
        """Replace the lane's connection by a new one, and then call ``on_open``."""


class Population:
    """Members of a share, spread over lanes. ``lanes`` are by coordinator."""

    def __init__(
        self, plan: Plan, share: Share, recorder: Recorder, lanes: dict[str, list[Lane]],
        crew: Crew,
    ) -> None:  # fmt: skip
        self._plan = plan
        self._topic = (plan.topic, bytes.fromhex(share.topic_id))
        self._crew = crew
        self._lanes = lanes
        self._next_lane = dict.fromkeys(lanes, 0)
        self._due: list[tuple[int, int, Member]] = []
        self._commits: dict[Member, CommitCall] = {}
        self._commit_starts = 0
        shared_by = Counter[str]()
        for part in share.groups:
            shared_by[part.address] += part.members
        self._has_own_lanes = all(
            count <= len(lanes[address]) for address, count in shared_by.items()
        )
        self._replacements: dict[Member, Member] = {}
        self._leaving = 0
        self.members: deque[Member] = deque()
        self.groups = [
            Group(group.group_id, plan.partitions, recorder.record_convergence)
            for group in share.groups
        ]
        if not plan.members:
            self._add_bare_commits(share.groups)
        for shared, group in zip(share.groups, self.groups, strict=True):
            for _ in range(shared.members):
                self.members.append(self._make_member(group, self._pick_lane(shared.address)))

    @property
    def is_complete(self) -> bool:
        """Whether all groups with members are complete."""
        return not self._plan.members or all(group.is_complete for group in self.groups)

    @property
    def have_left(self) -> bool:
        """Whether every member that has left has been answered."""
        return not self._leaving

    def count_joined(self) -> int:
        """How many members have an epoch."""
        return sum(1 for member in self.members if member.epoch)

    def join(self, members: Sequence[Member]) -> None:
        """Let these members join."""
        for member in members:
            self._watch(member, monotonic_ns() + _RETRY_NS)
            member.join()
            if self._plan.protocol is GroupProtocol.CONSUMER:
                self.set_in_turn(member, is_in_turn=True)

    def churn(self) -> None:
        """Let the oldest member leave, and a new one of the same group join.

        It joins on the same connection at once if many members share it. If not, it joins on a new
        one when the old one has left, as a client that is restarted.
        """
        if not self.members:
            return
        old = self.members.popleft()
        new = self._make_member(old.group, old.lane)
        if self._has_own_lanes:
            self._replacements[old] = new
            self._let_go(old)
            return
        self._let_go(old)
        self.members.append(new)
        self.join([new])

    def leave(self) -> None:
        """Let all members leave."""
        self._replacements.clear()
        while self.members:
            self._let_go(self.members.popleft())

    def beat_due(self, now_ns: int) -> None:
        """Send the heartbeats without which sessions end, and joins that failed once more."""
        due = self._due
        while due and due[0][0] <= now_ns:
            due_ns, _, member = heapq.heappop(due)
            if member.is_leaving or due_ns != member.due_ns:
                continue
            interval_ns = member.interval_ns if member.epoch else _RETRY_NS
            next_ns = member.sent_ns + interval_ns
            if next_ns <= now_ns:
                if self._is_able(member) and not member.lane.has_in_flight(member):
                    member.lane.add_control(member)
                next_ns = now_ns + interval_ns
            self._watch(member, next_ns)

    def note_reconnected(self, lane: Lane) -> None:
        """A lane has a new connection."""
        for member in list(self.members):
            if member.lane is lane:
                member.note_reconnected()

    def set_in_turn(self, member: Member, *, is_in_turn: bool) -> None:
        """Put the member's request of the load among those that its lane sends, or take it out."""
        call = self._find_call(member)
        if call is None:
            return
        calls = member.lane.calls
        if not is_in_turn:
            if call in calls:
                calls.remove(call)
        elif call not in calls:
            calls.append(call)
            member.lane.fill()

    def _is_able(self, member: Member) -> bool:
        """Whether a heartbeat may be sent; a classic member joins in its own time."""
        return bool(member.epoch) or self._plan.protocol is GroupProtocol.CONSUMER

    def note_interval(self, member: Member) -> None:
        """Look at the member sooner."""
        self._watch(member, member.sent_ns + member.interval_ns)

    def _watch(self, member: Member, due_ns: int) -> None:
        member.due_ns = due_ns
        heapq.heappush(self._due, (due_ns, id(member), member))

    def _let_go(self, member: Member) -> None:
        self.set_in_turn(member, is_in_turn=False)
        self._commits.pop(member, None)
        self._leaving += 1
        member.leave()

    def note_left(self, member: Member) -> None:
        """A leave has been answered: where members have a connection each, the next one joins."""
        self._leaving -= 1
        new = self._replacements.pop(member, None)
        if new is not None:
            self.members.append(new)
            self._crew.renew(new.lane, partial(self.join, [new]))

    def _find_call(self, member: Member) -> Call | None:
        match self._plan.workload:
            case Workload.HEARTBEATS:
                return member
            case Workload.COMMITS:
                if member not in self._commits:
                    self._commits[member] = self._make_commit(member)
                return self._commits[member]
            case Workload.IDLE:
                return None

    def _make_commit(self, member: Member) -> CommitCall:
        count = self._plan.commit_partitions
        slots = self._plan.partitions // count
        start = self._commit_starts % slots * count
        self._commit_starts += 1
        return CommitCall(
            member.group.group_id, member, self._plan.topic, range(start, start + count)
        )

    def _add_bare_commits(self, groups: Sequence[GroupShare]) -> None:
        """Commits of groups without members, which share the lanes of their coordinators."""
        count = self._plan.commit_partitions
        for address, lanes in self._lanes.items():
            mine = [group.group_id for group in groups if group.address == address]
            for index in range(max(len(lanes), len(mine))):
                for start in range(0, self._plan.partitions - count + 1, count):
                    places = range(start, start + count)
                    call = CommitCall(mine[index % len(mine)], None, self._plan.topic, places)
                    call.prepare()
                    lanes[index % len(lanes)].calls.append(call)

    def _pick_lane(self, address: str) -> Lane:
        lanes = self._lanes[address]
        self._next_lane[address] += 1
        return lanes[self._next_lane[address] % len(lanes)]

    def _make_member(self, group: Group, lane: Lane) -> Member:
        if self._plan.protocol is GroupProtocol.CONSUMER:
            return ConsumerMember(group, lane, self._topic, self)
        return ClassicMember(group, lane, self._topic, self, self._crew)
