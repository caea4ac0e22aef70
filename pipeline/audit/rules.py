"""All rules of the audit."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.audit.conversions import ConversionRules
from pipeline.audit.deletions import GroupDeletionRules, OffsetDeletionRules
from pipeline.audit.epochs import EpochRules
from pipeline.audit.holders import HolderRules
from pipeline.tables.group_log import Observer
from pipeline.tables.ownership import OwnershipRows
from pipeline.tables.rows import Rows

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


def make_audit_observers(rows: Rows, retention_ms: int) -> Sequence[Observer]:
    """What looks at a group; S1 is found in the intervals of ownership afterwards."""
    return (
        EpochRules(rows),
        HolderRules(rows),
        GroupDeletionRules(rows),
        OffsetDeletionRules(rows, retention_ms),
        ConversionRules(rows),
        OwnershipRows(rows),
    )
