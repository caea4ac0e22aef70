"""Committed offsets of the past, and what an undo sets: those before a change of offsets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from coordinator.service.admin.resets.reset_plan import Offsets, Place, Rows
from coordinator.service.calls.past_positions import read_past
from coordinator.service.calls.services import Services
from coordinator.service.wire.error_statuses import InvalidField
from model.caller import Caller
from model.commands.offset_changes import ListOffsetChanges
from model.commands.offsets import OffsetFetch
from model.errors import GroupError, NothingToUndo
from model.ids import GroupId, LogOffset, TopicName
from model.past.as_of import AsOf, AsOfOffset
from model.past.offset_changes import NO_OFFSET, OffsetChange, OffsetChangeKind
from model.responses.offset_changes import ListOffsetChangesResponse
from model.responses.offsets import FetchedOffset, FetchedTopic, OffsetFetchResponse
from model.topics import TopicImage
from muster.v1 import reset_pb2
from wording.times import render_time

LOG_OFFSET_MAX = (1 << 63) - 2


@dataclass(frozen=True, slots=True)
class Undone:
    """A change to undo: ``wanted`` are the offsets before it, ``left`` those that it left.

    Both are of the partitions that it is about. ``rows`` are all offsets before it, with what had
    been committed beside them.
    """

    change: OffsetChange
    wanted: Offsets
    left: Offsets
    rows: Rows = field(default_factory=dict)


def compute_undone(change: OffsetChange, before: Offsets, after: Offsets) -> Undone:
    """What there is to undo, given all offsets before and after the change."""
    if change.only_removes:
        # Members may have committed others between its writes.
        places = before.keys() - after.keys()
    else:
        every = before.keys() | after.keys()
        places = {place for place in every if before.get(place) != after.get(place)}
    wanted = {place: before.get(place, NO_OFFSET) for place in places}
    return Undone(change, wanted, {place: after[place] for place in places if place in after})


async def read_undone(
    services: Services,
    caller: Caller,
    group_id: GroupId,
    undo: reset_pb2.UndoChange,
    image: TopicImage,
) -> Undone:
    """What there is to undo of a change. Raises ``NothingToUndo``."""
    asked = undo.log_offset if undo.HasField("log_offset") else None
    change = await _find_change(services, caller, group_id, asked)
    rows: Rows = {}
    if change.first:
        position = AsOfOffset(LogOffset(change.first - 1))
        rows = await _read_past_rows(services, caller, group_id, position, image)
    position = AsOfOffset(change.last)
    after = await read_past_offsets(services, caller, group_id, position, image)
    before = {place: row.offset for place, row in rows.items()}
    undone = replace(compute_undone(change, before, after), rows=rows)
    if not undone.wanted:
        raise NothingToUndo(
            f"There is nothing to undo: the change of group {group_id} at log offset "
            f"{change.first} left offsets as they were, or their topics are gone."
        )
    return undone


async def _find_change(
    services: Services, caller: Caller, group_id: GroupId, asked: int | None
) -> OffsetChange:
    """The change at a log offset, or the last one."""
    if asked is not None and not 0 <= asked <= LOG_OFFSET_MAX:
        raise InvalidField("undo.log_offset", f"{asked} is not a log offset")
    before = None if asked is None else asked + 1
    found = await services.coordinator.call(ListOffsetChanges(caller, group_id, before, 1))
    assert isinstance(found, ListOffsetChangesResponse)
    if found.changes and asked in (None, found.changes[0].first):
        return found.changes[0]
    at = "" if asked is None else f" at log offset {asked}"
    raise NothingToUndo(
        f"There is nothing to undo: no change of the offsets of group {group_id} is known{at}"
        f"{_describe_start(found.since_ms)}."
    )


def _describe_start(since_ms: int) -> str:
    if since_ms < 0:
        return ""
    return f"; the history of the log begins at {render_time(since_ms)}"


async def read_past_offsets(
    services: Services, caller: Caller, group_id: GroupId, as_of: AsOf, image: TopicImage
) -> Offsets:
    """All that were committed at a past position, of topics that are still there."""
    rows = await _read_past_rows(services, caller, group_id, as_of, image)
    return {place: row.offset for place, row in rows.items()}


async def _read_past_rows(
    services: Services, caller: Caller, group_id: GroupId, as_of: AsOf, image: TopicImage
) -> dict[Place, FetchedOffset]:
    command = OffsetFetch(caller, group_id, None)
    past = await read_past(services, group_id, as_of, (command,))
    (response,) = past.responses
    if isinstance(response, GroupError):
        raise response
    assert isinstance(response, OffsetFetchResponse)

    def is_there(topic: FetchedTopic) -> bool:
        now = None if topic.name is None else image.by_name.get(topic.name)
        # A topic made again under the name of a deleted one has other records.
        return now is not None and topic.topic_id in (None, now.topic_id)

    return _find_rows([topic for topic in response.topics if is_there(topic)])


def find_committed(topics: Iterable[FetchedTopic]) -> dict[Place, int]:
    """The offsets of a fetch, without partitions that have none."""
    return {place: row.offset for place, row in _find_rows(topics).items()}


def _find_rows(topics: Iterable[FetchedTopic]) -> dict[Place, FetchedOffset]:
    return {
        (topic.name, row.partition): row
        for topic in topics
        for row in topic.partitions
        if topic.name is not None and row.offset >= 0
    }


def show_undone(response: reset_pb2.ResetOffsetsResponse, undone: Undone) -> None:
    """Add to the response to an undo what is undone, and the offsets that the change left."""
    response.undone.CopyFrom(encode_change(undone.change))
    for row in response.partitions:
        left = undone.left.get((TopicName(row.topic_name), row.partition))
        if left is not None:
            row.offset_changed = left


def encode_change(change: OffsetChange) -> reset_pb2.OffsetChange:
    """Encode a change of offsets."""
    return reset_pb2.OffsetChange(
        log_offset=change.first,
        last_log_offset=change.last,
        changed_ms=change.at_ms,
        kind=_KINDS[change.kind],
        principal=change.principal,
        offsets=change.offsets,
        undoes=change.undoes,
    )


_KINDS = {
    OffsetChangeKind.RESET: reset_pb2.OFFSET_CHANGE_KIND_RESET,
    OffsetChangeKind.UNDO: reset_pb2.OFFSET_CHANGE_KIND_UNDO,
    OffsetChangeKind.GROUP_DELETED: reset_pb2.OFFSET_CHANGE_KIND_GROUP_DELETED,
    OffsetChangeKind.OFFSETS_DELETED: reset_pb2.OFFSET_CHANGE_KIND_OFFSETS_DELETED,
    OffsetChangeKind.EXPIRED: reset_pb2.OFFSET_CHANGE_KIND_EXPIRED,
}
