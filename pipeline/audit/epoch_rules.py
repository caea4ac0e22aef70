"""S5 and S6: epochs never decrease, and no epoch exceeds the one that bounds it."""

from __future__ import annotations

from model.log.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
)
from pipeline.audit.findings import add_violation
from pipeline.tables.histories.group_state import AWAY_EPOCH, GroupState
from pipeline.tables.histories.rows import Rows
from pipeline.tables.histories.written_records import Change, GroupRecord, LoggedRecord


class EpochRules:
    """Checks S5 at each record and S6 after each write."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._moved: dict[str, LoggedRecord] = {}
        self._epochs_moved: LoggedRecord | None = None

    def see(self, state: GroupState, change: Change) -> None:
        if not isinstance(change, GroupRecord):
            return
        at, value = change.at, change.value
        match change.key, value:
            case ConsumerGroupMetadataKey(), ConsumerGroupMetadataValue(epoch=epoch):
                self._check_growth("group epoch", state.epoch, epoch, at)
                self._epochs_moved = at
            case (
                ConsumerGroupTargetAssignmentMetadataKey(),
                ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch),
            ):
                self._check_growth("assignment epoch", state.target_epoch, epoch, at)
                self._epochs_moved = at
            case GroupMetadataKey(), GroupMetadataValue(generation=generation):
                before = None if state.classic is None else state.classic.generation
                self._check_growth("generation", before, generation, at)
            case (
                ConsumerGroupCurrentMemberAssignmentKey(member_id=member_id),
                ConsumerGroupCurrentMemberAssignmentValue(member_epoch=epoch),
            ):
                self._check_member(state, member_id, epoch, at)
                self._moved[member_id] = at
            case _:
                pass

    def _check_growth(self, name: str, before: int | None, epoch: int, at: LoggedRecord) -> None:
        if epoch < 0:
            add_violation(self._rows, "S5", at, f"{name} {epoch}")
        elif before is not None and epoch < before:
            add_violation(self._rows, "S5", at, f"{name} {before}, then {epoch}")

    def _check_member(
        self, state: GroupState, member_id: str, epoch: int, at: LoggedRecord
    ) -> None:
        if epoch < AWAY_EPOCH:
            add_violation(self._rows, "S5", at, f"{member_id} has epoch {epoch}")
        current = state.current_assignments.get(member_id)
        if current is not None and current.epoch >= 0 and epoch >= 0:
            self._check_growth(f"epoch of {member_id}", current.epoch, epoch, at)

    def end_write(self, state: GroupState) -> None:
        target, epoch = state.target_epoch, state.epoch
        is_above = target is not None and epoch is not None and target > epoch
        if self._epochs_moved is not None and is_above:
            detail = f"assignment epoch {target} is above group epoch {epoch}"
            add_violation(self._rows, "S6", self._epochs_moved, detail)
        limit, name = (epoch, "group") if target is None else (target, "assignment")
        for member_id, at in self._moved.items():
            current = state.current_assignments.get(member_id)
            if current is not None and limit is not None and current.epoch > limit:
                detail = f"{member_id} is at epoch {current.epoch}, above {name} epoch {limit}"
                add_violation(self._rows, "S6", at, detail)
        self._moved.clear()
        self._epochs_moved = None

    def finish(self, state: GroupState) -> None:
        pass
