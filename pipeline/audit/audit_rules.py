"""The rules of the audit."""

from __future__ import annotations

from collections.abc import Sequence

from model.log.records import UnknownValue
from pipeline.audit.conversion_rules import ConversionRules, TopicNames
from pipeline.audit.deletions import GroupDeletionRules, OffsetDeletionRules
from pipeline.audit.epoch_rules import EpochRules
from pipeline.audit.owner_rules import OwnerRules
from pipeline.tables.histories.group_state import GroupState
from pipeline.tables.histories.ownership import OwnershipRows
from pipeline.tables.histories.rows import Rows
from pipeline.tables.histories.written_records import Change, GroupRecord, Observer

RULES = {
    "S1": "no partition is owned by two members of a group",
    "S3": "a partition's assignment epoch is not above its owner's member epoch",
    "S5": "epochs never decrease",
    "S6": "member epoch <= assignment epoch <= group epoch",
    "S7": "a member owns no partition that the target of its epoch assigns to another, and gets no "
    "newer target before it has revoked its partitions",
    "S18": "no offset is deleted while members subscribe to its topic, unless with the topic",
    "S19": "a deleted group stays deleted, with its offsets",
    "S21": "a group has one type; a conversion is one write and keeps offsets and assignments",
}


_NO_NAMES: TopicNames = {}


def make_audit_observers(
    rows: Rows, retention_ms: int, names: TopicNames = _NO_NAMES
) -> Sequence[Observer]:
    """Observers of one group; S1 is checked afterwards, on the ownership intervals.

    ``names`` maps topic ids to names, as far as known.
    """
    rules = (
        EpochRules(rows),
        OwnerRules(rows),
        GroupDeletionRules(rows),
        OffsetDeletionRules(rows, retention_ms),
        ConversionRules(rows, names),
        OwnershipRows(rows),
    )
    return (WhileReadable(rules),)


class WhileReadable:
    """Runs observers on a group until one of its records has a version of a newer Kafka.

    Such a record cannot be read, so later records cannot be judged.
    """

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = observers

    def see(self, state: GroupState, change: Change) -> None:
        if isinstance(change, GroupRecord) and isinstance(change.value, UnknownValue):
            self._observers = ()
        for observer in self._observers:
            observer.see(state, change)

    def end_write(self, state: GroupState) -> None:
        for observer in self._observers:
            observer.end_write(state)

    def finish(self, state: GroupState) -> None:
        for observer in self._observers:
            observer.finish(state)
