"""Rebalances: what each target assignment moved, its cause, and when the members converged."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from model.log.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberState,
    UnknownValue,
)
from pipeline.tables.histories.group_state import (
    AWAY_EPOCH,
    CLASSIC,
    CONSUMER,
    GroupState,
    Place,
    read_classic_assignments,
    read_target,
)
from pipeline.tables.histories.history_tables import REBALANCES
from pipeline.tables.histories.rows import Rows, to_timestamp
from pipeline.tables.histories.written_records import Change, GroupRecord, LoggedRecord

MEMBER_JOINED = "member_joined"
MEMBER_LEFT = "member_left"
"""Left, was removed or timed out: the records are the same."""
SUBSCRIPTION_CHANGED = "subscription_changed"
ASSIGNOR_CHANGED = "assignor_changed"
TOPICS_CHANGED = "topics_changed"
PROTOCOL_CHANGED = "protocol_changed"
SESSION_EXPIRED = "session_expired"
REBALANCE_TIMEOUT = "rebalance_timeout"
ADMINISTRATOR = "administrator"
"""These three are told apart from ``MEMBER_LEFT`` by the ledger of a store alone."""
CAUSES = (
    MEMBER_JOINED,
    MEMBER_LEFT,
    SESSION_EXPIRED,
    REBALANCE_TIMEOUT,
    ADMINISTRATOR,
    SUBSCRIPTION_CHANGED,
    ASSIGNOR_CHANGED,
    TOPICS_CHANGED,
    PROTOCOL_CHANGED,
)

_NOT_REACHED = -1
_Cause = tuple[str | None, str | None]
"""The cause and its member, ``None`` if the records do not show them."""
_UNKNOWN: _Cause = (None, None)


@dataclass(slots=True)
class _Rebalance:
    at: LoggedRecord
    from_epoch: int | None
    to_epoch: int
    started: LoggedRecord | None
    cause: _Cause
    members_moved: int
    partitions_moved: int


class ConsumerRebalances:
    """A row for each target assignment of a consumer group.

    A rebalance begins with the first group epoch after the previous target. It has converged when
    every member that is not away is stable at its epoch or beyond. The target that a conversion
    writes keeps the partitions of classic members, and does not count.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._open: list[_Rebalance] = []
        self._reached: dict[str, int] = {}
        self._members_at: Counter[int] = Counter()
        """How many members have reached each epoch."""
        self._causes: list[_Cause] = []
        """Causes in the current write, until a group epoch takes one."""
        self._started: LoggedRecord | None = None
        self._cause: _Cause = _UNKNOWN
        self._moved_members: set[str] = set()
        self._targets_before: dict[str, frozenset[Place]] = {}
        self._owners_before: dict[Place, str] = {}
        self._is_converted = False
        self._last: LoggedRecord | None = None

    # ---------------------------------------------------------------------------------- records

    def see(self, state: GroupState, change: Change) -> None:
        if not isinstance(change, GroupRecord) or isinstance(change.value, UnknownValue):
            return
        at, value = change.at, change.value
        self._last = at
        match change.key:
            case ConsumerGroupMemberMetadataKey(member_id=member_id):
                assert value is None or isinstance(value, ConsumerGroupMemberMetadataValue)
                self._see_member(state, member_id, value)
            case ConsumerGroupRegularExpressionKey():
                self._causes.append((SUBSCRIPTION_CHANGED, None))
            case ConsumerGroupMetadataKey():
                assert value is None or isinstance(value, ConsumerGroupMetadataValue)
                self._see_epoch(state, at, value)
            case ConsumerGroupTargetAssignmentMemberKey(member_id=member_id):
                assert value is None or isinstance(value, ConsumerGroupTargetAssignmentMemberValue)
                self._see_target_of(state, member_id, value)
            case ConsumerGroupTargetAssignmentMetadataKey():
                if isinstance(value, ConsumerGroupTargetAssignmentMetadataValue):
                    self._see_target(state, at, value.assignment_epoch)
            case ConsumerGroupCurrentMemberAssignmentKey(member_id=member_id):
                assert value is None or isinstance(value, ConsumerGroupCurrentMemberAssignmentValue)
                self._reach(member_id, _NOT_REACHED if value is None else _compute_reached(value))
            case GroupMetadataKey():
                self._is_converted = self._is_converted or value is None
            case _:
                pass

    def _see_member(
        self, state: GroupState, member_id: str, value: ConsumerGroupMemberMetadataValue | None
    ) -> None:
        before = state.members.get(member_id)
        if value is None:
            self._causes.append((MEMBER_LEFT, member_id))
            self._forget(member_id)
            if state.targets.get(member_id):
                self._moved_members.add(member_id)
        elif before is None:
            self._causes.append((MEMBER_JOINED, member_id))
            self._reach(member_id, self._reached.get(member_id, _NOT_REACHED))
        elif (before.subscribed_topic_names, before.subscribed_topic_regex) != (
            value.subscribed_topic_names,
            value.subscribed_topic_regex,
        ):
            self._causes.append((SUBSCRIPTION_CHANGED, member_id))
        elif before.server_assignor != value.server_assignor:
            self._causes.append((ASSIGNOR_CHANGED, member_id))

    def _see_epoch(
        self, state: GroupState, at: LoggedRecord, value: ConsumerGroupMetadataValue | None
    ) -> None:
        if value is None:
            self._end_all()
            return
        if self._started is None:
            self._started, self._cause = at, self._find_cause(state, value)
        self._causes.clear()

    def _find_cause(self, state: GroupState, value: ConsumerGroupMetadataValue) -> _Cause:
        if self._causes:
            return self._causes[0]
        if state.epoch is not None and value.metadata_hash != state.metadata_hash:
            return TOPICS_CHANGED, None
        return _UNKNOWN

    # ---------------------------------------------------------------------------------- targets

    def _see_target_of(
        self,
        state: GroupState,
        member_id: str,
        value: ConsumerGroupTargetAssignmentMemberValue | None,
    ) -> None:
        before = state.targets.get(member_id, frozenset())
        self._targets_before.setdefault(member_id, before)
        for place in before if value is None else read_target(value) | before:
            owner = state.target_owner.get(place)
            if owner is not None:
                self._owners_before.setdefault(place, owner)

    def _see_target(self, state: GroupState, at: LoggedRecord, epoch: int) -> None:
        is_first = state.target_epoch is None
        if not (self._is_converted and is_first):
            gained = 0
            for member_id, before in self._targets_before.items():
                after = state.targets.get(member_id, frozenset())
                if after != before:
                    self._moved_members.add(member_id)
                gained += sum(self._owners_before.get(place) != member_id for place in after)
            self._open.append(
                _Rebalance(
                    at,
                    state.target_epoch,
                    epoch,
                    self._started,
                    self._cause,
                    len(self._moved_members),
                    gained,
                )
            )
        self._start_anew()

    def _start_anew(self) -> None:
        self._started, self._cause = None, _UNKNOWN
        self._moved_members.clear()
        self._targets_before.clear()
        self._owners_before.clear()

    # ------------------------------------------------------------------------------ convergence

    def _reach(self, member_id: str, epoch: int) -> None:
        self._forget(member_id)
        if epoch != AWAY_EPOCH:
            self._reached[member_id] = epoch
            self._members_at[epoch] += 1

    def _forget(self, member_id: str) -> None:
        epoch = self._reached.pop(member_id, None)
        if epoch is not None:
            self._members_at[epoch] -= 1
            if not self._members_at[epoch]:
                del self._members_at[epoch]

    def end_write(self, state: GroupState) -> None:
        self._causes.clear()
        self._is_converted = False
        if not state.members:
            self._end_all()
        elif self._open and self._members_at:
            lowest = min(self._members_at)
            while self._open and self._open[0].to_epoch <= lowest:
                self._add(self._open.pop(0), self._last)

    def _end_all(self) -> None:
        """The group is empty: open rebalances never converge."""
        for rebalance in self._open:
            self._add(rebalance, None)
        self._open.clear()
        self._start_anew()

    def finish(self, state: GroupState) -> None:
        self._end_all()

    def _add(self, rebalance: _Rebalance, converged: LoggedRecord | None) -> None:
        started = rebalance.started
        started_ms = None if started is None else started.ts_ms
        converged_ms = None if converged is None else converged.ts_ms
        duration_ms = None
        if started_ms is not None and converged_ms is not None:
            duration_ms = converged_ms - started_ms
        self._rows.add(
            REBALANCES,
            rebalance.at,
            protocol=CONSUMER,
            from_epoch=rebalance.from_epoch,
            to_epoch=rebalance.to_epoch,
            started_at=to_timestamp(started_ms),
            converged_at=to_timestamp(converged_ms),
            duration_ms=duration_ms,
            members_moved=rebalance.members_moved,
            partitions_moved=rebalance.partitions_moved,
            cause=rebalance.cause[0],
            cause_member_id=rebalance.cause[1],
        )


def _compute_reached(value: ConsumerGroupCurrentMemberAssignmentValue) -> int:
    """The last epoch whose target the member has reached."""
    if value.member_epoch == AWAY_EPOCH or value.state == MemberState.STABLE:
        return value.member_epoch
    return value.member_epoch - 1


class ClassicRebalances:
    """A row for each generation of a classic group that has members.

    The record is written when the leader has sent the assignment, so no record tells when the
    rebalance began. The record that a conversion writes keeps the members' partitions, and does not
    count.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._is_converted = False

    def see(self, state: GroupState, change: Change) -> None:
        if not isinstance(change, GroupRecord):
            return
        if isinstance(change.key, ConsumerGroupMetadataKey):
            self._is_converted = change.value is None
        if isinstance(change.value, GroupMetadataValue) and not self._is_converted:
            self._see_generation(state, change.at, change.value)

    def _see_generation(
        self, state: GroupState, at: LoggedRecord, value: GroupMetadataValue
    ) -> None:
        before = state.classic
        if not value.members or (before is not None and before.generation == value.generation):
            return
        held = dict(read_classic_assignments(value))
        held_before = {} if before is None else dict(read_classic_assignments(before))
        owners = {place: member for member, places in held_before.items() for place in places}
        cause, member_id = _find_classic_cause(before, value)
        self._rows.add(
            REBALANCES,
            at,
            protocol=CLASSIC,
            from_epoch=None if before is None else before.generation,
            to_epoch=value.generation,
            converged_at=to_timestamp(at.ts_ms),
            members_moved=sum(
                held.get(member, frozenset()) != held_before.get(member, frozenset())
                for member in held.keys() | held_before.keys()
            ),
            partitions_moved=sum(
                owners.get(place) != member for member, places in held.items() for place in places
            ),
            cause=cause,
            cause_member_id=member_id,
        )

    def end_write(self, state: GroupState) -> None:
        self._is_converted = False

    def finish(self, state: GroupState) -> None:
        pass


def _find_classic_cause(before: GroupMetadataValue | None, value: GroupMetadataValue) -> _Cause:
    """The cause, if exactly one thing changed."""
    if before is None:
        return _UNKNOWN
    said = {member.member_id: member.subscription for member in value.members}
    said_before = {member.member_id: member.subscription for member in before.members}
    joined, left = said.keys() - said_before.keys(), said_before.keys() - said.keys()
    if joined and left:
        return _UNKNOWN
    if joined or left:
        (member_id,) = (joined | left) if len(joined | left) == 1 else (None,)
        return (MEMBER_JOINED if joined else MEMBER_LEFT), member_id
    if before.protocol != value.protocol:
        return PROTOCOL_CHANGED, None
    return _UNKNOWN
