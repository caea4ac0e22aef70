"""S18 and S19: deletions of offsets and groups, and whether they were allowed."""

from __future__ import annotations

from dataclasses import dataclass

from model.log.records import GroupMetadataKey, GroupMetadataValue
from pipeline.audit.findings import (
    DELETIONS,
    EXPIRED,
    GROUP_DELETED,
    TOPIC_GONE,
    UNEXPLAINED,
    add_violation,
)
from pipeline.tables.histories.group_state import GroupState, read_classic_topics
from pipeline.tables.histories.rows import Rows
from pipeline.tables.histories.written_records import (
    Change,
    GroupRecord,
    LoggedRecord,
    OffsetChange,
)

GROUP_TYPES = (2, 3, 11, 17)
"""Types of the records whose tombstone deletes a group."""

_APPEND_MS = 60_000
"""Batches of one append have timestamps this close, even if the machine paused in between."""


class GroupDeletionRules:
    """S19: a deleted group leaves no offsets, and returns only with an epoch."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._deleted: LoggedRecord | None = None
        self._part: LoggedRecord | None = None
        self._is_reported = False

    def see(self, state: GroupState, change: Change) -> None:
        if not isinstance(change, GroupRecord):
            return
        if change.value is not None:
            self._part = change.at
            self._is_reported = self._is_reported and change.at.type_id not in GROUP_TYPES
        elif change.at.type_id in GROUP_TYPES:
            self._deleted = change.at

    def end_write(self, state: GroupState) -> None:
        is_gone = not state.types() and not state.has_parts()
        if self._deleted is not None and is_gone and state.offsets:
            topic, partitions = next(iter(state.offsets.items()))
            detail = f"a deleted group still has an offset of {topic}-{min(partitions)}"
            add_violation(self._rows, "S19", self._deleted, detail)
        is_back = self._part is not None and state.was_deleted and state.has_parts()
        if is_back and not self._is_reported:
            assert self._part is not None
            detail = "a deleted group has records again, but no epoch"
            add_violation(self._rows, "S19", self._part, detail)
            self._is_reported = True
        self._deleted = None

    def finish(self, state: GroupState) -> None:
        if self._part is None or self._is_reported:
            return
        if state.has_parts() and state.epoch is None:
            detail = "a group has members or a target, but no epoch"
            add_violation(self._rows, "S19", self._part, detail)


@dataclass(frozen=True, slots=True)
class _Deletion:
    change: OffsetChange
    is_over: bool
    """Whether its retention had passed, whatever the subscriptions."""


@dataclass(slots=True)
class _Suspects:
    """Offsets of one topic that were deleted while the group subscribed to it."""

    changes: list[OffsetChange]
    generation: int | None
    """The generation of the classic group, if only classic members subscribe."""
    is_fresh: bool = True
    """Whether the current write has added to them."""


class OffsetDeletionRules:
    """S18: no offset is deleted while members of its group subscribe to its topic.

    The coordinator refuses such a request, so only the deletion of the topic explains it, which
    deletes all offsets of the group for the topic: at once, or in the batches of one append.
    Deletions that a request may have caused are only counted.

    The subscription of a classic group is what its members joined with when the join phase ended,
    but its record is written only after the leader's SyncGroup. So only two consecutive records
    show that the group subscribed to a topic all the time between them.
    """

    def __init__(self, rows: Rows, retention_ms: int) -> None:
        self._rows = rows
        self._retention_ms = retention_ms
        self._suspects: dict[str, _Suspects] = {}
        """By topic: those of the last write, while the group has other offsets of the topic."""
        self._undecided: list[tuple[OffsetChange, int]] = []
        """Deleted in a generation of a classic group; its next record decides."""
        self._free: list[_Deletion] = []
        """Deletions of the current write that are allowed."""

    def see(self, state: GroupState, change: Change) -> None:
        if isinstance(change, GroupRecord):
            if isinstance(change.key, GroupMetadataKey):
                self._decide(change.value)
            return
        topic = change.topic
        if not change.is_deletion:
            self._see_commit(state, topic)
        elif state.has_members() and state.subscribes_to(topic):
            self._suspect(state, change)
        else:
            self._free.append(_Deletion(change, self._is_over(state, change.at)))

    def _see_commit(self, state: GroupState, topic: str) -> None:
        if topic not in self._suspects:
            return
        if topic in state.offsets:
            self._settle(topic)
        else:
            self._explain_all(topic)

    def _suspect(self, state: GroupState, change: OffsetChange) -> None:
        found = self._suspects.get(change.topic)
        if found is not None and not _is_same_append(found.changes[-1].at, change.at):
            self._settle(change.topic)
            found = None
        if found is None:
            generation = None
            if state.classic is not None and not state.has_subscriber(change.topic):
                generation = state.classic.generation
            found = self._suspects[change.topic] = _Suspects([], generation)
        found.changes.append(change)
        found.is_fresh = True

    def _is_over(self, state: GroupState, at: LoggedRecord) -> bool:
        if at.ts_ms is None:
            return False
        if at.expire_ts_ms is not None:
            return at.ts_ms >= at.expire_ts_ms
        since_ms = at.commit_ts_ms
        classic = state.classic
        is_empty = classic is not None and classic.protocol_type and not classic.members
        if classic is not None and is_empty and classic.current_state_timestamp >= 0:
            since_ms = classic.current_state_timestamp
        return since_ms is not None and at.ts_ms - since_ms >= self._retention_ms

    def end_write(self, state: GroupState) -> None:
        for topic, found in list(self._suspects.items()):
            if topic not in state.offsets:
                self._explain_all(topic)
            elif not found.is_fresh:
                self._settle(topic)
            found.is_fresh = False
        if not self._free:
            return
        is_gone = not state.types() and not state.has_parts()
        for deletion in self._free:
            change = deletion.change
            if deletion.is_over:
                self._explain(change, EXPIRED)
            elif is_gone and not state.offsets:
                self._explain(change, GROUP_DELETED)
            else:
                has_topic = change.topic in state.offsets
                self._explain(change, UNEXPLAINED if has_topic else TOPIC_GONE)
        self._free.clear()

    def finish(self, state: GroupState) -> None:
        for topic in list(self._suspects):
            self._settle(topic)
        self._decide(None)

    def _settle(self, topic: str) -> None:
        """Other offsets of the topic remain, so the topic was not deleted."""
        found = self._suspects.pop(topic)
        if found.generation is None:
            for change in found.changes:
                self._accuse(change)
        else:
            self._undecided += [(change, found.generation) for change in found.changes]

    def _decide(self, value: object) -> None:
        """Judge by the next record of the classic group; ``None`` if there is none."""
        for topic in [topic for topic, found in self._suspects.items() if not found.is_fresh]:
            self._settle(topic)
        for change, generation in self._undecided:
            if _subscribes_next(value, generation, change.topic):
                self._accuse(change)
            else:
                self._explain(change, UNEXPLAINED)
        self._undecided.clear()

    def _explain_all(self, topic: str) -> None:
        for change in self._suspects.pop(topic).changes:
            self._explain(change, TOPIC_GONE)

    def _explain(self, change: OffsetChange, explanation: str) -> None:
        self._rows.add(
            DELETIONS,
            change.at,
            topic=change.topic,
            partition=change.partition,
            explanation=explanation,
        )

    def _accuse(self, change: OffsetChange) -> None:
        detail = (
            f"the offset of {change.topic}-{change.partition} is deleted while members of the "
            "group subscribe to the topic"
        )
        add_violation(self._rows, "S18", change.at, detail)


def _is_same_append(before: LoggedRecord, at: LoggedRecord) -> bool:
    """Whether both may belong to one append that was split into two batches."""
    if before.base_offset == at.base_offset:
        return True
    if before.ts_ms is None or at.ts_ms is None:
        return False
    return abs(at.ts_ms - before.ts_ms) <= _APPEND_MS


def _subscribes_next(value: object, generation: int, topic: str) -> bool:
    """Whether the record is of this generation or the next, and its members subscribe to the topic.

    In skipped generations the subscription is unknown.
    """
    if not isinstance(value, GroupMetadataValue) or not value.members:
        return False
    if value.generation > generation + 1:
        return False
    topics = read_classic_topics(value)
    return topics is None or topic in topics
