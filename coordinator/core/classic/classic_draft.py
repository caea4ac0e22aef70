"""A mutable draft of a classic group, used while a command is handled.

A live classic group is an immutable value. A handler makes a draft of it, changes the draft, and
returns the new value in its ``Outcome``. The runtime installs the value after the records are
replayed. A handler that raises has changed nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from coordinator.core.state.classic.classic_group import (
    ClassicGroup,
    ClassicMember,
    InitialDelay,
    Phase,
    compute_group_record,
    compute_size,
)
from coordinator.core.state.classic.classic_states import STEPS, ClassicEvent, Reaction
from coordinator.core.state.outcome import (
    ArmClassicDeadline,
    CancelClassicDeadline,
    Effect,
    NoteRebalance,
    Outcome,
    Release,
    RenewClassicSessions,
    Wait,
)
from model.commands.classic import ClassicDeadline, JoinProtocol
from model.errors import GroupError, MemberRemoved
from model.ids import GroupId, InstanceId, MemberId
from model.log.records import Record
from model.now import Now
from model.past.causes import Cause
from model.responses.response import Response

GROUP = MemberId("")
"""The member id of the deadlines of the group itself."""


REASON_MAX_CHARS = 1_000


class ClassicDraft:
    """A draft of a classic group, and the records, effects and releases of its changes."""

    # More than 15 attributes: the fields of a group, and the parts of an outcome.

    def __init__(self, group: ClassicGroup, now: Now) -> None:
        self._group = group
        self._now = now
        self.state = group.state
        self.since_ms = group.current_state_timestamp_ms
        self.generation = group.generation
        self.protocol_type = group.protocol_type
        self.protocol_name = group.protocol_name
        self._leader = group.leader
        self._is_leader_gone = False
        self.members = dict(group.members)
        self.instances = dict(group.instances)
        self.protocol_counts = dict(group.protocol_counts)
        self.awaiting_joins = group.awaiting_joins
        self.subscribed_topics = group.subscribed_topics
        self.pending_members = set(group.pending_members)
        self.pending_syncs = set(group.pending_syncs)
        self.initial_delay: InitialDelay | None = group.initial_delay
        self.metadata_bytes = group.metadata_bytes
        self.unknown_protocols = group.unknown_protocols
        self.records: list[Record] = []
        self.effects: list[Effect] = []
        self.releases: list[Release] = []

    # ------------------------------------------------------------------------------------ queries

    @property
    def group_id(self) -> GroupId:
        return self._group.group_id

    @property
    def leader(self) -> MemberId | None:
        """The leader; the first remaining member if the leader was removed.

        Computed on access: when very many members are removed, each may be the leader in turn.
        """
        if self._is_leader_gone:
            self.leader = next(iter(self.members), None)
        return self._leader

    @leader.setter
    def leader(self, member_id: MemberId | None) -> None:
        self._leader, self._is_leader_gone = member_id, False

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of the members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def supports(self, name: str) -> bool:
        """Whether all members whose protocols are known support this one."""
        return self.protocol_counts.get(name, 0) == len(self.members) - self.unknown_protocols

    @property
    def has_all_joined(self) -> bool:
        """Whether all members have joined and no handed-out member id is pending."""
        return len(self.members) == self.awaiting_joins and not self.pending_members

    def finish(
        self, response: Response | GroupError | None = None, wait: Wait | None = None
    ) -> Outcome:
        """The outcome of the command: the group's new value, its records, response and effects."""
        return Outcome(
            records=tuple(self.records),
            response=response,
            effects=tuple(self.effects),
            classic=self.value(),
            wait=wait,
            releases=tuple(self.releases),
        )

    def value(self) -> ClassicGroup:
        """The group as it is now."""
        return ClassicGroup(
            self._group.group_id,
            self.state,
            self.generation,
            self.protocol_type,
            self.protocol_name,
            self.leader,
            self.since_ms,
            self.members,
            self.subscribed_topics,
            self.instances,
            self.protocol_counts,
            self.awaiting_joins,
            frozenset(self.pending_members),
            frozenset(self.pending_syncs),
            self.initial_delay,
            self.metadata_bytes,
            self.unknown_protocols,
        )

    def write(self) -> None:
        """Add the record of the group as it is now. Raises ``UnknownServerError`` if too large."""
        self.records.append(compute_group_record(self.value()))

    def reaction(self, event: ClassicEvent) -> Reaction:
        """The reaction to an event in the current state."""
        return STEPS[self.state, event].reaction

    def move(self, event: ClassicEvent) -> Reaction:
        """Make the state transition of an event, and return the reaction."""
        step = STEPS[self.state, event]
        if step.state is not self.state:
            self.state = step.state
            self.since_ms = self._now.wall_ms
        return step.reaction

    # ------------------------------------------------------------------------------------ members

    def add(self, member: ClassicMember, protocol_type: str) -> None:
        """Add a new member."""
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader is None:
            self.leader = member.member_id
        self._count(member.protocols, 1)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.instances[member.instance_id] = member.member_id
        self.awaiting_joins += member.awaits is Phase.JOIN
        self.pending_members.discard(member.member_id)

    def put(self, member: ClassicMember) -> None:
        """Replace a member by its new value."""
        old = self.members[member.member_id]
        if old.protocols is not member.protocols:
            self._count(old.protocols, -1)
            self._count(member.protocols, 1)
        self.awaiting_joins += (member.awaits is Phase.JOIN) - (old.awaits is Phase.JOIN)
        self.members[member.member_id] = member

    def put_all(self, members: Iterable[ClassicMember]) -> None:
        """Replace all members by their new values; their protocols must be unchanged."""
        self.members = {member.member_id: member for member in members}
        self.awaiting_joins = sum(each.awaits is Phase.JOIN for each in self.members.values())

    def remove(self, member_id: MemberId) -> None:
        """Remove a member or a handed-out member id; answer its parked request with an error."""
        self.pending_members.discard(member_id)
        self.pending_syncs.discard(member_id)
        self.cancel(ClassicDeadline.SESSION, member_id)
        member = self.members.pop(member_id, None)
        if member is None:
            return
        if member.awaits is not None:
            error = MemberRemoved(f"Member {member_id} was removed from the group.")
            self.releases.append(Release(member_id, member.awaits, error))
        self._count(member.protocols, -1)
        self.awaiting_joins -= member.awaits is Phase.JOIN
        if member.instance_id is not None and self.instances.get(member.instance_id) == member_id:
            del self.instances[member.instance_id]
        if self._leader == member_id:
            self._is_leader_gone = True

    def rename(self, instance_id: InstanceId, new_id: MemberId) -> ClassicMember:
        """Give a static member a new member id; it keeps everything else."""
        old_id = self.instances[instance_id]
        old = self.members.pop(old_id)
        self.awaiting_joins -= old.awaits is Phase.JOIN
        member = replace(old, member_id=new_id, awaits=None)
        self.members[new_id] = member
        self.instances[instance_id] = new_id
        self.pending_syncs.discard(old_id)
        self.cancel(ClassicDeadline.SESSION, old_id)
        if self.leader == old_id:
            self.leader = new_id
        return member

    def _count(self, protocols: tuple[JoinProtocol, ...], by: int) -> None:
        self.metadata_bytes += by * compute_size(protocols)
        self.unknown_protocols += 0 if protocols else by
        counts = self.protocol_counts
        for name in {protocol.name for protocol in protocols}:
            count = counts.get(name, 0) + by
            if count:
                counts[name] = count
            else:
                counts.pop(name, None)

    # ---------------------------------------------------------------------- responses, deadlines

    def note_rebalance(self, reason: str, cause: Cause) -> None:
        """Note the reason of a rebalance for the server's log, truncated: clients provide it."""
        if len(reason) > REASON_MAX_CHARS:
            reason = f"{reason[:REASON_MAX_CHARS]}..."
        self.effects.append(NoteRebalance(self.group_id, self.generation, reason, cause))

    def release_all(
        self,
        waiting: Sequence[ClassicMember],
        phase: Phase,
        answers: Iterable[Response | GroupError],
    ) -> None:
        """Answer the parked requests of these members, and renew their sessions.

        The leader is answered first: the others wait for its SyncGroup.
        """
        if not waiting:
            return
        given = zip(waiting, answers, strict=True)
        releases = [Release(member.member_id, phase, answer) for member, answer in given]
        leader = self.leader
        place = next((at for at, each in enumerate(releases) if each.member_id == leader), 0)
        self.releases += (releases.pop(place), *releases)
        sessions = tuple((each.member_id, each.session_timeout_ms) for each in waiting)
        self.effects.append(RenewClassicSessions(self.group_id, sessions))

    def begin_session(self, member: ClassicMember) -> None:
        """Renew the member's session."""
        self.arm(ClassicDeadline.SESSION, member.session_timeout_ms, member.member_id)

    def arm(self, deadline: ClassicDeadline, timeout_ms: int, member_id: MemberId = GROUP) -> None:
        """Arm the deadline to fire in ``timeout_ms``."""
        self.effects.append(ArmClassicDeadline(self.group_id, deadline, member_id, timeout_ms))

    def cancel(self, deadline: ClassicDeadline, member_id: MemberId = GROUP) -> None:
        """Cancel the deadline."""
        self.effects.append(CancelClassicDeadline(self.group_id, deadline, member_id))
