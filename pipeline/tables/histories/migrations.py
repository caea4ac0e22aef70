"""Conversions of groups between the classic and the consumer protocol."""

from __future__ import annotations

from model.log.records import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
)
from pipeline.tables.histories.group_state import GroupState
from pipeline.tables.histories.history_tables import MIGRATIONS
from pipeline.tables.histories.rows import Rows
from pipeline.tables.histories.written_records import Change, GroupRecord

UPGRADE, DOWNGRADE = "upgrade", "downgrade"


class MigrationRows:
    """A row for each write that deletes a group of one type and creates it with the other."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._left_classic: GroupMetadataValue | None = None
        self._left_epoch: int | None = None
        self._members = 0
        """The number of members of the consumer group when the write began."""
        self._is_first = True

    def see(self, state: GroupState, change: Change) -> None:
        if self._is_first:
            self._members, self._is_first = len(state.members), False
        if not isinstance(change, GroupRecord):
            return
        match change.key, change.value:
            case GroupMetadataKey(), None:
                self._left_classic = state.classic
            case ConsumerGroupMetadataKey(), None:
                self._left_epoch = state.epoch
            case ConsumerGroupMetadataKey(), ConsumerGroupMetadataValue(epoch=epoch):
                left = self._left_classic
                if left is not None:
                    self._add(change, UPGRADE, left.generation, epoch, len(left.members))
                self._left_classic = None
            case GroupMetadataKey(), GroupMetadataValue(generation=generation):
                if self._left_epoch is not None:
                    members = self._members
                    self._add(change, DOWNGRADE, self._left_epoch, generation, members)
                self._left_epoch = None
            case _:
                pass

    def _add(
        self, change: GroupRecord, direction: str, from_epoch: int, to_epoch: int, members: int
    ) -> None:
        self._rows.add(
            MIGRATIONS,
            change.at,
            direction=direction,
            from_epoch=from_epoch,
            to_epoch=to_epoch,
            members=members,
            is_online=members > 0,
        )

    def end_write(self, state: GroupState) -> None:
        self._left_classic = self._left_epoch = None
        self._is_first = True

    def finish(self, state: GroupState) -> None:
        pass
