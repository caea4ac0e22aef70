"""All rules of the audit."""

from __future__ import annotations

from collections.abc import Sequence

from model.log.records import UnknownValue
from pipeline.audit.conversions import ConversionRules, TopicNames
from pipeline.audit.deletions import GroupDeletionRules, OffsetDeletionRules
from pipeline.audit.epoch_rules import EpochRules
from pipeline.audit.holders import HolderRules
from pipeline.tables.histories.group_state import GroupState
from pipeline.tables.histories.ownership import OwnershipRows
from pipeline.tables.histories.rows import Rows
from pipeline.tables.histories.written_records import Change, GroupRecord, Observer

RULES = {
    "S1": "no partition is held by two members of a group",
    "S3": "a partition's epoch is not above its holder's, and each partition has one",
    "S5": "epochs never decrease",
    "S6": "member epoch <= assignment epoch <= group epoch",
    "S7": "at an epoch a member holds nothing that its target gives to another, and a member "
    "that must revoke gets no newer target",
    "S18": "no offset is deleted while members subscribe to its topic, unless with the topic",
    "S19": "a deleted group stays deleted, with its offsets",
    "S21": "a group has one type; a conversion is one write and keeps offsets and assignments",
}


_NO_NAMES: TopicNames = {}


def make_audit_observers(
    rows: Rows, retention_ms: int, names: TopicNames = _NO_NAMES
) -> Sequence[Observer]:
    """What looks at a group; S1 is found in the intervals of ownership afterwards.

    ``names`` are those of topic ids, as far as they are known.
    """
    rules = (
        EpochRules(rows),
        HolderRules(rows),
        GroupDeletionRules(rows),
        OffsetDeletionRules(rows, retention_ms),
        ConversionRules(rows, names),
        OwnershipRows(rows),
    )
    return (WhileReadable(rules),)


class WhileReadable:
    """Has others look at a group until a record of it has a version of a newer Kafka.

    What that one says is not known, and so nothing can be held against the records that follow.
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
