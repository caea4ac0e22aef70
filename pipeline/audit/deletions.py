"""S18 and S19: what is deleted, whether it might be, and whether it stays so."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.audit.findings import (
    DELETIONS,
    EXPIRED,
    GROUP_DELETED,
    TOPIC_GONE,
    UNEXPLAINED,
    add_violation,
)
from pipeline.tables.group_log import Change, GroupRecord, LoggedRecord, OffsetChange
from pipeline.tables.group_state import GroupState
from pipeline.tables.rows import Rows

GROUP_TYPES = (2, 3, 11, 17)
"""Of the records whose tombstone deletes a group."""


class GroupDeletionRules:
    """S19: a deleted group leaves no offsets behind, and comes back with an epoch."""

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
            detail = "a deleted group has come back without an epoch"
            add_violation(self._rows, "S19", self._part, detail)
            self._is_reported = True
        self._deleted = None

    def finish(self, state: GroupState) -> None:
        if self._part is None or self._is_reported:
            return
        if state.has_parts() and state.epoch is None:
            detail = "a group has members or a target, and no epoch"
            add_violation(self._rows, "S19", self._part, detail)


@dataclass(frozen=True, slots=True)
class _Deletion:
    change: OffsetChange
    is_over: bool
    """The retention time was over, whoever subscribed."""


class OffsetDeletionRules:
    """S18: no offset goes while its group has members that subscribe to its topic.

    A request is refused there too, so only the deletion of the topic explains it, and that takes
    all the group's offsets of the topic. What might have been a request is counted and no more.
    """

    def __init__(self, rows: Rows, retention_ms: int) -> None:
        self._rows = rows
        self._retention_ms = retention_ms
        self._suspects: dict[str, list[OffsetChange]] = {}
        """By topic: deleted under a subscription, while others of the topic are there."""
        self._free: list[_Deletion] = []
        """Of the write that is under way: deleted where that is allowed."""

    def see(self, state: GroupState, change: Change) -> None:
        if not isinstance(change, OffsetChange):
            return
        topic = change.topic
        if not change.is_deletion:
            if topic in self._suspects and state.offsets.get(topic, set()) - {change.partition}:
                self._accuse(topic)
        elif state.has_members() and state.subscribes_to(topic):
            self._suspects.setdefault(topic, []).append(change)
        else:
            self._free.append(_Deletion(change, self._is_over(state, change.at)))

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
        for topic in [topic for topic in self._suspects if topic not in state.offsets]:
            for change in self._suspects.pop(topic):
                self._explain(change, TOPIC_GONE)
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
            self._accuse(topic)

    def _explain(self, change: OffsetChange, explanation: str) -> None:
        self._rows.add(
            DELETIONS,
            change.at,
            topic=change.topic,
            partition=change.partition,
            explanation=explanation,
        )

    def _accuse(self, topic: str) -> None:
        for change in self._suspects.pop(topic):
            detail = (
                f"the offset of {topic}-{change.partition} is deleted, and the group has members "
                "that subscribe to the topic"
            )
            add_violation(self._rows, "S18", change.at, detail)
