"""Checkers of classic members, in groups of either type: S10, S21 to S25, L3 and L6.

A classic group is a value, so that before and after a command are compared as they are. What a
generation is said to be is kept until the process dies: it is written when its leader has assigned.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from coordinator.core.state.classic.classic_group import (
    ClassicGroup,
    ClassicGroupState,
    compute_group_record,
)
from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.outcome import Outcome
from coordinator.core.state.shard import Shard
from model.commands.classic import (
    ClassicDeadline,
    ClassicHeartbeat,
    ExpireClassicDeadline,
    JoinGroup,
    SyncGroup,
)
from model.commands.offsets import OffsetCommit
from model.errors import GroupError
from model.ids import GroupId, MemberId, TopicName
from model.log.records import GroupMetadataKey, GroupMetadataValue, Record, TopicPartitions
from model.responses.classic import ClassicHeartbeatResponse, JoinGroupResponse, SyncGroupResponse
from model.topics import TopicImage
from muster.assignors.embedded import MalformedProtocolError, decode_assignment, decode_subscription
from tests.sim.checkers.liveliness import Liveliness
from tests.sim.checkers.violations import check
from tests.support.shadow import Place

LATE_MS = 2_000
"""What a phase may be late by."""

REBALANCING = (ClassicGroupState.PREPARING_REBALANCE, ClassicGroupState.COMPLETING_REBALANCE)
Key = tuple[GroupId, MemberId]


class Change(NamedTuple):
    """One command and what it did to its group, which is of one type or the other."""

    command: Any
    shard: Shard
    outcome: Outcome
    classic_before: ClassicGroup | None
    classic_after: ClassicGroup | None
    had_consumer_group: bool
    group: ConsumerGroup | None

    @property
    def group_id(self) -> GroupId:
        return GroupId(self.command.group_id)

    def answers(self) -> Iterable[Any]:
        """All that is answered: to the command, and to those who waited."""
        if self.outcome.response is not None:
            yield self.outcome.response
        for release in self.outcome.releases:
            yield release.answer


@dataclass
class PhaseOfRebalance:
    """Since when a group is in it, and for how long it may be."""

    state: ClassicGroupState
    generation: int
    since_ms: int
    longest_ms: int


class ClassicChecker:
    """Of one world; ``restart`` when a server process begins.

    ``on_gone`` hears of members that are none any more, or are, of a generation that has begun
    without them; ``on_joined`` of those that are in one.
    """

    def __init__(
        self,
        lively: Liveliness,
        clock_ms: Callable[[], int],
        on_gone: Callable[[GroupId, MemberId, bool], None],
        on_joined: Callable[[GroupId, MemberId], None],
    ) -> None:
        self._lively = lively
        self._clock_ms = clock_ms
        self._on_gone = on_gone
        self._on_joined = on_joined
        self._generations: dict[tuple[GroupId, int], tuple[MemberId | None, str | None]] = {}
        self._phases: dict[GroupId, PhaseOfRebalance] = {}
        self._told: dict[int, tuple[Any, int, frozenset[Place]]] = {}

    def restart(self) -> None:
        """What was not written is forgotten."""
        self._generations.clear()
        self._phases.clear()

    def note_gone(self, group_id: GroupId, member_id: MemberId) -> None:
        """A classic member of a consumer group was removed; it may come again under its id."""
        self._lively.heard_ms.pop((group_id, member_id), None)
        self._on_gone(group_id, member_id, False)

    def note_converted(self, change: Change) -> None:
        """Sessions of members begin anew when their group becomes one of another type."""
        now_ms, group_id = self._clock_ms(), change.group_id
        for group in (change.classic_before, change.classic_after):
            members = () if group is None else group.members
            self._lively.heard_ms.update(((group_id, member), now_ms) for member in members)

    # -------------------------------------------------------------------------- what answers say

    def _note_told(self, answer: Any, image: TopicImage) -> None:
        places: frozenset[Place] = frozenset()
        if isinstance(answer, SyncGroupResponse):
            places = decode_places(answer.assignment, image)
        # The answer is kept, so that nothing else has its id.
        self._told[id(answer)] = answer, self._clock_ms(), places

    def answered_ms(self, answer: Any) -> int:
        """When the server came to an answer: from then on it counts a session."""
        return self._told[id(answer)][1]

    def meaning(self, answer: SyncGroupResponse) -> frozenset[Place]:
        """The partitions that an answer names, with the ids that the topics had then."""
        return self._told[id(answer)][2]

    # ---------------------------------------------------------------------------------- commands

    def check(self, change: Change) -> None:
        """After a command was carried out."""
        for answer in change.answers():
            if isinstance(answer, JoinGroupResponse | SyncGroupResponse):
                self._note_told(answer, change.shard.image)
        if change.classic_after is not None:
            self._check_generation(change, change.classic_after)
            check_classic_group(change.classic_after)
        self._note_members(change)
        self._note_phase(change)
        if change.classic_before is not None and not change.had_consumer_group:
            check_request(change, change.classic_before)
        self._check_room(change)
        self._note_heard(change)

    def _check_generation(self, change: Change, group: ClassicGroup) -> None:
        """S23: who leads, and by which protocol, is the same for all; the leader alone assigns."""
        before = change.classic_before
        key = (group.group_id, group.generation)
        if before is None or before.generation > group.generation:
            # Another group of that id: its generations are counted anew.
            for old in [each for each in self._generations if each[0] == group.group_id]:
                del self._generations[old]
        known = self._generations.get(key)
        if known is not None and known[0] not in group.members and before is not None:
            # The leader is the same instance as before, and has another id; or it is gone, and the
            # generation with it.
            self._generations[key] = group.leader, group.protocol_name
        for answer in change.answers():
            if isinstance(answer, JoinGroupResponse) and answer.leader is not None:
                self._check_join_answer(change, group, answer, known)
        for key_of, value in change.outcome.records:
            if isinstance(key_of, GroupMetadataKey) and isinstance(change.command, SyncGroup):
                assert isinstance(value, GroupMetadataValue)
                self._check_assigned(change, change.command, value)

    def _check_join_answer(
        self,
        change: Change,
        group: ClassicGroup,
        answer: JoinGroupResponse,
        known: tuple[MemberId | None, str | None] | None,
    ) -> None:
        key = (group.group_id, answer.generation)
        said = (answer.leader, answer.protocol_name)
        first = self._generations.setdefault(key, said)
        # One that comes back as the leader and must not assign is named another (KIP-814).
        before = change.classic_before
        was_leader = None if before is None else before.leader
        is_kept_from_it = not answer.members and answer.leader in (known and known[0], was_leader)
        check(
            first == said or is_kept_from_it,
            "S23",
            f"{key} is led by {first}, and {answer.member_id} is told {said}",
        )
        check(answer.generation == group.generation, "S23", f"{answer} in {group.generation}")
        told = [member.member_id for member in answer.members]
        check(
            not told or (answer.leader == answer.member_id and told == list(group.members)),
            "S23",
            f"{answer.member_id} is told of {told}, members are {list(group.members)}",
        )

    def _check_assigned(
        self, change: Change, command: SyncGroup, value: GroupMetadataValue
    ) -> None:
        before = change.classic_before
        assert before is not None
        leader, protocol = self._generations.get(
            (command.group_id, before.generation), (before.leader, before.protocol_name)
        )
        is_by_leader = (
            command.member_id == leader == value.leader
            and command.generation == before.generation == value.generation
            and value.protocol == protocol
        )
        check(is_by_leader, "S23", f"{command.member_id} assigned {before.generation} of {leader}")
        given = {each.member_id: each.assignment for each in command.assignments}
        for member in value.members:
            expected = given.get(member.member_id, b"")
            check(member.assignment == expected, "S23", f"{member.member_id} has another")

    # ----------------------------------------------------------------------------------- members

    def _note_members(self, change: Change) -> None:
        """Who is in, and who is out: whoever is out believes so until it hears of it."""
        before, after, group_id = change.classic_before, change.classic_after, change.group_id
        joined = {
            answer.member_id for answer in change.answers() if isinstance(answer, JoinGroupResponse)
        }
        for member_id in sorted(joined):
            self._on_joined(group_id, member_id)
        if before is None or not before.members:
            return
        group = change.group
        left: Collection[str] = () if group is None else group.entries
        if after is not None:
            left = after.members
        is_new = after is not None and after.generation > before.generation
        for member_id in before.members:
            if member_id not in left:
                # It may come again under its id, also to a group of another type.
                self._lively.heard_ms.pop((group_id, member_id), None)
            if member_id not in left or (is_new and member_id not in joined):
                self._on_gone(group_id, member_id, member_id in left)

    def _note_heard(self, change: Change) -> None:
        """L3: who is removed for its silence was silent for its session."""
        command, now_ms, heard_ms = change.command, self._clock_ms(), self._lively.heard_ms
        group_id = change.group_id
        if isinstance(command, ExpireClassicDeadline) and change.classic_before is not None:
            self._check_session(command, change.classic_before, change.classic_after)
        is_refused = isinstance(change.outcome.response, GroupError)
        by_client = isinstance(command, ClassicHeartbeat) and not command.by_server
        if by_client or (isinstance(command, SyncGroup) and not is_refused):
            heard_ms[group_id, command.member_id] = now_ms
        for answer in change.answers():
            if isinstance(answer, JoinGroupResponse):
                heard_ms[group_id, answer.member_id] = now_ms
        for release in change.outcome.releases:
            heard_ms[group_id, release.member_id] = now_ms

    def _check_session(
        self, command: ExpireClassicDeadline, before: ClassicGroup, after: ClassicGroup | None
    ) -> None:
        member = before.members.get(command.member_id)
        is_gone = after is None or command.member_id not in after.members
        if command.deadline is ClassicDeadline.SESSION and member is not None and is_gone:
            key = (command.group_id, command.member_id)
            silent_ms = self._clock_ms() - self._lively.heard_ms.get(key, 0)
            is_due = silent_ms >= member.session_timeout_ms
            check(is_due, "L3", f"{key} expired after {silent_ms} ms of silence")

    def _check_room(self, change: Change) -> None:
        """S25: whoever begins a generation, or joins a consumer group, finds room in it."""
        before, after = change.classic_before, change.classic_after
        settings = change.shard.settings_of(change.group_id)
        if after is not None and after.state is not ClassicGroupState.EMPTY:
            size = settings.group_max_size
            check(after.awaiting_joins <= size, "S25", f"{after.awaiting_joins} join of {size}")
            is_new = before is None or after.generation > before.generation
            if is_new:
                # Static members that are away are in the generation, and have kept their places.
                there = [
                    answer for answer in change.answers() if isinstance(answer, JoinGroupResponse)
                ]
                check(len(there) <= size, "S25", f"{len(there)} are in a group of {size}")

    # -------------------------------------------------------------------------------- rebalances

    def _note_phase(self, change: Change) -> None:
        group, group_id = change.classic_after, change.group_id
        if group is None or group.state not in REBALANCING:
            self._phases.pop(group_id, None)
            return
        longest_ms = max((m.rebalance_timeout_ms for m in group.members.values()), default=0)
        phase = self._phases.get(group_id)
        nobody_joins = (
            group.state is ClassicGroupState.PREPARING_REBALANCE and not group.awaiting_joins
        )
        is_same = phase is not None and (phase.state, phase.generation) == (
            group.state,
            group.generation,
        )
        if phase is None or not is_same:
            phase = PhaseOfRebalance(group.state, group.generation, self._clock_ms(), longest_ms)
            self._phases[group_id] = phase
        elif nobody_joins:
            # It waits for the sessions of static members to end: for as long as those asked for who
            # were there when it began, though they may have left.
            phase.since_ms = self._clock_ms()
        phase.longest_ms = max(phase.longest_ms, longest_ms)

    def check_phases(self, groups: Iterable[ClassicGroup], initial_delay_ms: int) -> None:
        """L6: no phase of a rebalance lasts longer than the rebalance timeout."""
        now_ms = self._clock_ms()
        for group in groups:
            phase = self._phases.get(group.group_id)
            if phase is None or group.state is not phase.state:
                continue
            is_joining = group.state is ClassicGroupState.PREPARING_REBALANCE
            if is_joining and not group.awaiting_joins:
                continue
            passed_ms = self._lively.compute_passed_ms(phase.since_ms, now_ms)
            late_ms = passed_ms - phase.longest_ms - (initial_delay_ms if is_joining else 0)
            what = f"{group.group_id} is {group.state.value} for {passed_ms} ms"
            check(late_ms < LATE_MS, "L6", what)


# --------------------------------------------------------------------------------- classic groups


def check_request(change: Change, group: ClassicGroup) -> None:
    """S23, S24: what is answered without an error was asked by a member of the generation."""
    command, response = change.command, change.outcome.response
    if not isinstance(command, SyncGroup | ClassicHeartbeat) or isinstance(response, GroupError):
        return
    is_answer = isinstance(response, SyncGroupResponse | ClassicHeartbeatResponse)
    if not is_answer and change.outcome.wait is None:
        return
    who = f"{command.member_id} of {command.generation}"
    is_member = command.member_id in group.members
    is_current = command.generation == group.generation
    check(is_member and is_current, "S23", f"{who} was answered in {group.generation}")
    instance_id = command.instance_id
    if instance_id is not None:
        holder = group.instances.get(instance_id)
        check(holder == command.member_id, "S24", f"{who} is not {instance_id}, which is {holder}")


def check_classic_group(group: ClassicGroup) -> None:
    """S24, and S13 of a group at rest: it is what its record says."""
    instances = {
        member.instance_id: member.member_id
        for member in group.members.values()
        if member.instance_id is not None
    }
    count = sum(member.instance_id is not None for member in group.members.values())
    is_one = count == len(instances) and dict(group.instances) == instances
    check(is_one, "S24", f"{group.group_id}: {group.instances} for {list(group.members)}")


def check_record(live: ClassicGroup, recorded: ClassicGroup | None) -> None:
    """S13: a classic group at rest is what a restart would make of it."""
    if live.state not in (ClassicGroupState.STABLE, ClassicGroupState.EMPTY):
        return
    # Where there are offsets the group is there before anybody has joined it.
    is_new = live.state is ClassicGroupState.EMPTY and not live.generation
    check(recorded is not None or is_new, "S13", f"{live.group_id} has no record")
    if recorded is not None:
        here, there = (as_at_rest(group) for group in (live, recorded))
        check(here == there, "S13", lambda: f"{live.group_id} is {here}, its record {there}")


def as_at_rest(group: ClassicGroup) -> Any:
    """What lasts of a group, but for the time since which it is in its state."""
    _, value = compute_group_record(group)
    assert isinstance(value, GroupMetadataValue)
    return value.generation, value.protocol, value.leader, value.members


def check_classic_commit(
    command: OffsetCommit, group: ClassicGroup | None, records: list[Record]
) -> None:
    """S10: a member of the generation commits, unless an assignment is awaited."""
    if group is None or not records or command.member_epoch is None:
        return
    is_current = (
        command.member_id in group.members
        and command.member_epoch == group.generation
        and group.state is not ClassicGroupState.COMPLETING_REBALANCE
    )
    what = f"{command.member_id} of {command.member_epoch} committed in {group.generation}"
    check(is_current, "S10", what)


def decode_owned(command: JoinGroup, image: TopicImage) -> tuple[TopicPartitions, ...] | None:
    """What a member says that it owns when it joins."""
    try:
        owned = decode_subscription(command.protocols[0].metadata).owned_partitions
    except MalformedProtocolError:
        return None
    return tuple(
        TopicPartitions(topic.topic_id, tuple(each.partitions))
        for each in owned
        if (topic := image.by_name.get(TopicName(each.topic))) is not None
    )


def decode_names(assignment: bytes) -> set[tuple[str, int]]:
    """The partitions of an assignment, by name."""
    if not assignment:
        return set()
    topics = decode_assignment(assignment).partitions
    return {(each.topic, partition) for each in topics for partition in each.partitions}


def decode_places(assignment: bytes, image: TopicImage) -> frozenset[Place]:
    """The partitions of an assignment, of topics that are there."""
    if not assignment:
        return frozenset()
    return frozenset(
        (topic.topic_id, partition)
        for each in decode_assignment(assignment).partitions
        if (topic := image.by_name.get(TopicName(each.topic))) is not None
        for partition in each.partitions
    )
