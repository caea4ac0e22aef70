"""S3 and S7, and S1 within one record: which partitions a member may own at its epoch."""

from __future__ import annotations

from model.log.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
)
from pipeline.audit.findings import add_violation
from pipeline.tables.histories.group_state import (
    CurrentAssignment,
    GroupState,
    Place,
    read_current_assignment,
    show_topic_id,
)
from pipeline.tables.histories.rows import Rows
from pipeline.tables.histories.written_records import Change, GroupRecord, LoggedRecord


class OwnerRules:
    """Checks each record of type 8, in log order.

    A coordinator writes the target before the members that move to it, so the target is known.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def see(self, state: GroupState, change: Change) -> None:
        if not isinstance(change, GroupRecord):
            return
        key, value = change.key, change.value
        if not isinstance(key, ConsumerGroupCurrentMemberAssignmentKey):
            return
        if isinstance(value, ConsumerGroupCurrentMemberAssignmentValue):
            current = read_current_assignment(value)
            self._check_epochs(value, current, change.at)
            self._check_target(state, key.member_id, current, change.at)
            before = state.current_assignments.get(key.member_id)
            if before is not None:
                self._check_revocation(key.member_id, before, current, change.at)

    def end_write(self, state: GroupState) -> None:
        pass

    def finish(self, state: GroupState) -> None:
        pass

    def _check_epochs(
        self,
        value: ConsumerGroupCurrentMemberAssignmentValue,
        current: CurrentAssignment,
        at: LoggedRecord,
    ) -> None:
        topics = value.assigned_partitions + value.partitions_pending_revocation
        for topic in topics:
            epochs, partitions = topic.assignment_epochs, topic.partitions
            if epochs and len(epochs) != len(partitions):
                detail = f"{len(partitions)} partitions with {len(epochs)} epochs"
                add_violation(self._rows, "S3", at, detail)
        if sum(len(topic.partitions) for topic in topics) != len(
            current.assigned.keys() | current.pending.keys()
        ):
            add_violation(self._rows, "S1", at, "the member owns a partition twice")
        for place, epoch in current.held():
            if 0 <= current.epoch < epoch:
                detail = f"{show_place(place)} has epoch {epoch}, above its owner's {current.epoch}"
                add_violation(self._rows, "S3", at, detail)

    def _check_target(
        self, state: GroupState, member_id: str, current: CurrentAssignment, at: LoggedRecord
    ) -> None:
        if current.epoch < 0 or current.epoch != state.target_epoch:
            return
        for place, _ in current.held():
            owner = state.target_owner.get(place, member_id)
            if owner != member_id:
                detail = (
                    f"{member_id} is at epoch {current.epoch} and owns {show_place(place)}, "
                    f"which the target assigns to {owner}"
                )
                add_violation(self._rows, "S7", at, detail)

    def _check_revocation(
        self,
        member_id: str,
        before: CurrentAssignment,
        current: CurrentAssignment,
        at: LoggedRecord,
    ) -> None:
        """A member gets no newer target before it has revoked its partitions."""
        if before.epoch < 0 or not before.pending.keys() & current.pending.keys():
            return
        if current.epoch > before.epoch:
            detail = (
                f"{member_id} goes from epoch {before.epoch} to {current.epoch} before it has "
                "revoked its partitions"
            )
            add_violation(self._rows, "S7", at, detail)
        elif any(not before.holds(place) for place in current.assigned):
            detail = f"{member_id} gets partitions before it has revoked its own"
            add_violation(self._rows, "S7", at, detail)


def show_place(place: Place) -> str:
    """The partition's name for people."""
    topic, partition = place
    name = topic if isinstance(topic, str) else show_topic_id(topic)
    return f"{name}-{partition}"
