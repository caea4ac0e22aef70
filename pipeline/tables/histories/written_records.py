"""The records of one group in the order written, and the atomic writes that they belong to.

A group has one log partition, so the order of offsets is the order of events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from model.log.records import RecordKey, RecordValue
from pipeline.tables.histories.group_state import GroupState
from storage.codec.errors import CodecError
from storage.codec.record_codec import decode_key, decode_value

OFFSET_COMMIT_TYPE = 1


class LoggedRecord(NamedTuple):
    """One row of the history from Spark, sorted by group and offset.

    ``ts_ms`` is ``None`` if the timestamp is outside Spark's range. ``goes_on`` is set if the
    previous batch was so large that this one may belong to the same write. Offsets have no key, but
    ``topic`` and ``topic_partition``; their ``value`` is ``None`` for a deletion, empty for a first
    commit. A deletion has the times of the last commit in ``commit_ts_ms`` and ``expire_ts_ms``.
    """

    log_partition: int
    group_id: str
    offset: int
    base_offset: int
    ts_ms: int | None
    type_id: int
    key: bytes | None
    value: bytes | None
    goes_on: bool = False
    topic: str | None = None
    topic_partition: int | None = None
    commit_ts_ms: int | None = None
    expire_ts_ms: int | None = None


class GroupRecord(NamedTuple):
    """A decoded record other than an offset; ``value`` is ``None`` for a tombstone."""

    at: LoggedRecord
    key: RecordKey
    value: RecordValue | None


class OffsetChange(NamedTuple):
    """The first commit or the deletion of an offset."""

    at: LoggedRecord
    topic: str
    partition: int
    is_deletion: bool


Change = GroupRecord | OffsetChange


class Observer(Protocol):
    """Sees the changes of one group in order. ``state`` is the group's."""

    def see(self, state: GroupState, change: Change) -> None:
        """See a change before it is applied to the state."""

    def end_write(self, state: GroupState) -> None:
        """All changes of one write have been applied."""

    def finish(self, state: GroupState) -> None:
        """The log has no more records of this group."""


MakeObservers = Callable[[int, str], Sequence[Observer]]
"""Creates the observers of a group, from its log partition and its id."""


def follow_groups(records: Iterable[LoggedRecord], make_observers: MakeObservers) -> Iterator[None]:
    """Apply the records group by group to a state, and show each change to the observers.

    Yields after each write, so that the caller can take the observers' rows.
    """
    current: tuple[int, str] | None = None
    state = GroupState("")
    observers: Sequence[Observer] = ()
    last: LoggedRecord | None = None
    for record in records:
        if (record.log_partition, record.group_id) != current:
            _finish(state, observers, last)
            current = record.log_partition, record.group_id
            state, observers, last = GroupState(record.group_id), make_observers(*current), None
            yield
        elif last is not None and not _is_same_write(last, record):
            _end_write(state, observers)
            yield
        change = decode_change(record)
        last = record
        if change is None:
            continue
        for observer in observers:
            observer.see(state, change)
        if isinstance(change, GroupRecord):
            state.apply(change.key, change.value)
        else:
            state.apply_offset(change.topic, change.partition, change.is_deletion)
    _finish(state, observers, last)
    yield


def _is_same_write(before: LoggedRecord, record: LoggedRecord) -> bool:
    if before.base_offset == record.base_offset:
        return True
    return record.goes_on and before.ts_ms == record.ts_ms


def _end_write(state: GroupState, observers: Sequence[Observer]) -> None:
    for observer in observers:
        observer.end_write(state)


def _finish(state: GroupState, observers: Sequence[Observer], last: LoggedRecord | None) -> None:
    if last is None:
        return
    _end_write(state, observers)
    for observer in observers:
        observer.finish(state)


def decode_change(record: LoggedRecord) -> Change | None:
    """Decode a row; ``None`` if it is unreadable, which is counted elsewhere."""
    if record.type_id == OFFSET_COMMIT_TYPE:
        assert record.topic is not None
        assert record.topic_partition is not None
        return OffsetChange(record, record.topic, record.topic_partition, record.value is None)
    try:
        key = decode_key(record.key or b"")
        value = None if record.value is None else decode_value(record.type_id, record.value)[1]
    except CodecError:
        return None
    return GroupRecord(record, key, value)
