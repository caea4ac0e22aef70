"""Offsets that a reset sets: from a strategy, what is committed, and where the logs are; pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from coordinator.service.wire.error_statuses import InvalidField
from model.commands.offsets import TopicOffsets
from model.errors import ErrorCode, ResetRefused
from model.ids import GroupId, TopicName
from model.log.commit_records import OffsetRow, make_offset_columns
from model.past.offset_changes import NO_OFFSET
from model.responses.offsets import FetchedOffset
from model.responses.resets import OffsetsReset
from model.topics import TopicImage
from muster.v1 import reset_pb2

Place: TypeAlias = tuple[TopicName, int]
Offsets: TypeAlias = Mapping[Place, int]
Rows: TypeAlias = Mapping[Place, FetchedOffset]

OFFSET_MAX: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of the partitions of a reset.

    ``before`` are the group's committed offsets, ``starts`` and ``ends`` where the logs begin and
    end. ``wanted`` are positions that were looked up: by time, of a plan, of another group, or
    of the past.
    """

    before: Offsets
    starts: Offsets
    ends: Offsets
    wanted: Offsets


@dataclass(frozen=True, slots=True)
class PlannedOffset:
    """One partition, and its offset after the reset; ``NO_OFFSET`` if an undo removes it."""

    place: Place
    before: int | None
    start: int | None
    end: int | None
    after: int
    is_clamped: bool


def compute_plan(
    request: reset_pb2.ResetOffsetsRequest, places: Iterable[Place], known: Known
) -> list[PlannedOffset]:
    """The offset of each partition. Raises ``ResetRefused`` if one is not known, or not there."""
    return [_plan_partition(request, place, known) for place in sorted(places)]


def _plan_partition(
    request: reset_pb2.ResetOffsetsRequest, place: Place, known: Known
) -> PlannedOffset:
    asked = _find_position(request, place, known)
    start, end = known.starts.get(place), known.ends.get(place)
    if request.WhichOneof("to") == "undo" and asked == NO_OFFSET:
        return PlannedOffset(place, known.before.get(place), start, end, NO_OFFSET, False)
    after = asked
    # A log without records may have them elsewhere: then its bounds say nothing.
    if start is not None and end is not None and start < end:
        after = min(max(asked, start), end)
    elif asked < 0:
        after = 0
    if after != asked and not request.clamp:
        bounds = f"its log is {start} to {end}" if start is not None else "offsets begin at 0"
        raise ResetRefused(
            f"{_name(place)} has no position {asked}, {bounds}: with clamp the nearest is taken.",
            ErrorCode.OFFSET_OUT_OF_RANGE,
        )
    if after > OFFSET_MAX:
        raise ResetRefused(
            f"{_name(place)}: {after} is too large an offset.", ErrorCode.OFFSET_OUT_OF_RANGE
        )
    return PlannedOffset(place, known.before.get(place), start, end, after, after != asked)


def _find_position(request: reset_pb2.ResetOffsetsRequest, place: Place, known: Known) -> int:
    before = known.before.get(place)
    match request.WhichOneof("to"):
        case "position":
            return _find_named(request.position, place, known)
        case "offset":
            return request.offset
        case "shift_by":
            if before is None:
                raise ResetRefused(f"{_name(place)} has no committed offset to shift.")
            return before + request.shift_by
        case "timestamp_ms":
            found = known.wanted.get(place)
            if found is None:
                raise _compute_unknown(place, "the offset of that time is")
            return found if found >= 0 else _find_end(place, known)
        case "plan" | "as_of" | "undo":
            return known.wanted[place]
        case "other_group_id":
            found = known.wanted.get(place)
            if found is None:
                raise ResetRefused(
                    f"The group {request.other_group_id} has no committed offset of {_name(place)}."
                )
            return found
        case _:
            raise InvalidField(
                "to",
                "say where to: a position, an offset, a time, a plan, a group, as of when, or undo",
            )


def _find_named(position: int, place: Place, known: Known) -> int:
    match position:
        case reset_pb2.RESET_POSITION_EARLIEST:
            start = known.starts.get(place)
            if start is None:
                raise _compute_unknown(place, "where the log begins is")
            return start
        case reset_pb2.RESET_POSITION_LATEST:
            return _find_end(place, known)
        case reset_pb2.RESET_POSITION_CURRENT:
            before = known.before.get(place)
            return _find_end(place, known) if before is None else before
        case _:
            raise InvalidField("position", "set position to EARLIEST, LATEST or CURRENT")


def _find_end(place: Place, known: Known) -> int:
    end = known.ends.get(place)
    if end is None:
        raise _compute_unknown(place, "where the log ends is")
    return end


def _compute_unknown(place: Place, what: str) -> ResetRefused:
    return ResetRefused(
        f"{_name(place)}: {what} not known here, where its records are not: give an offset."
    )


def _name(place: Place) -> str:
    return f"{place[0]}-{place[1]}"


LIVE: Final = "live"
"""What is in place of the offsets of a group with members, which commit all the time."""


def compute_preview(
    group_id: GroupId,
    revision: str,
    before: Offsets,
    places: Iterable[Place],
    image: TopicImage,
    *,
    is_live: bool,
) -> str:
    """Names what a preview has shown: the group, the partitions, and their offsets.

    A topic made again under the name of a deleted one is another.
    """
    seen = hashlib.sha256(group_id.encode())
    for place in sorted(places):
        name, partition = place
        topic = image.by_name.get(name)
        topic_id = "" if topic is None else topic.topic_id.hex()
        offset = "" if is_live else before.get(place, -1)
        seen.update(f"\0{name}\0{topic_id}\0{partition}\0{offset}".encode())
    named = f"{revision}.{seen.hexdigest()[:16]}"
    return f"{named}.{LIVE}" if is_live else named


def compute_again(
    preview: str, group_id: GroupId, before: Offsets, places: Iterable[Place], image: TopicImage
) -> tuple[str, str]:
    """The revision of the group in a preview, and what the preview would be now."""
    named = preview.removesuffix(f".{LIVE}")
    revision, _, _ = named.rpartition(".")
    is_live = named != preview
    return revision, compute_preview(group_id, revision, before, places, image, is_live=is_live)


def compute_topic_offsets(
    plan: Sequence[PlannedOffset], image: TopicImage, past: Rows
) -> tuple[TopicOffsets, ...]:
    """The offsets of a plan as a command has them: of the topics that it was made for.

    What an undo brings back has the leader epoch and the metadata that ``past`` has of it.
    """
    rows: dict[TopicName, list[OffsetRow]] = {}
    for each in plan:
        name, partition = each.place
        leader_epoch, metadata = -1, ""
        former = past.get(each.place)
        if former is not None and former.offset == each.after:
            leader_epoch = -1 if former.leader_epoch is None else former.leader_epoch
            metadata = former.metadata
        rows.setdefault(name, []).append((partition, each.after, leader_epoch, metadata))
    by_name = image.by_name
    return tuple(
        TopicOffsets(
            name, by_name[name].topic_id if name in by_name else None, make_offset_columns(row)
        )
        for name, row in rows.items()
    )


def encode_plan(
    plan: Iterable[PlannedOffset], preview: str, done: OffsetsReset
) -> reset_pb2.ResetOffsetsResponse:
    """Encode what was set, or would be."""
    return reset_pb2.ResetOffsetsResponse(
        partitions=[
            reset_pb2.ResetPartition(
                topic_name=each.place[0],
                partition=each.place[1],
                offset_before=each.before,
                offset_after=each.after,
                start_offset=each.start,
                end_offset=each.end,
                clamped=each.is_clamped,
            )
            for each in plan
        ],
        preview=preview,
        live=done.is_live,
        group_epoch=done.group_epoch,
    )
