"""Resets of committed offsets: where to, as people say it, and as requests have it."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from muster.v1 import reset_pb2, types_pb2
from wording.errors import InputError
from wording.partitions import parse_partitions
from wording.positions import parse_as_of
from wording.times import parse_iso_duration_ms, parse_moment

OFFSET_MAX = (1 << 63) - 1
_PLAN_ROWS_MAX = 100_000


@dataclass(frozen=True, slots=True)
class PlanText:
    """A CSV of offsets, and what it is called in errors."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Strategy:
    """Where to, by the options of `muster group reset`; exactly one is given."""

    to_earliest: bool = False
    to_latest: bool = False
    to_current: bool = False
    to_datetime: str | None = None
    by_duration: str | None = None
    shift_by: int | None = None
    to_offset: int | None = None
    from_file: PlanText | None = None
    to_group: str | None = None
    to_as_of: str | None = None

    def fill(self, request: reset_pb2.ResetOffsetsRequest, now_ms: Callable[[], int]) -> None:
        """Set ``to`` of the request. Raises ``InputError`` unless exactly one option is given."""
        given = [
            name
            for name in self.__slots__
            if (value := getattr(self, name)) is not None and value is not False
        ]
        if len(given) != 1:
            raise InputError(
                "say where to, with exactly one of --to-earliest, --to-latest, --to-current, "
                "--to-datetime, --by-duration, --shift-by, --to-offset, --from-file, --to-group "
                "and --to-as-of"
            )
        if self.to_earliest:
            request.position = reset_pb2.RESET_POSITION_EARLIEST
        elif self.to_latest:
            request.position = reset_pb2.RESET_POSITION_LATEST
        elif self.to_current:
            request.position = reset_pb2.RESET_POSITION_CURRENT
        elif self.to_datetime is not None:
            request.timestamp_ms = parse_moment("--to-datetime", self.to_datetime, now_ms)
        elif self.by_duration is not None:
            span_ms = parse_iso_duration_ms("--by-duration", self.by_duration)
            request.timestamp_ms = max(now_ms() - span_ms, 0)
        elif self.shift_by is not None:
            request.shift_by = check_number("--shift-by", self.shift_by)
        elif self.to_offset is not None:
            request.offset = check_number("--to-offset", self.to_offset)
        elif self.from_file is not None:
            request.plan.CopyFrom(parse_plan(self.from_file, request.group_id))
        elif self.to_group is not None:
            request.other_group_id = self.to_group
        elif self.to_as_of is not None:
            request.as_of.CopyFrom(parse_as_of("--to-as-of", self.to_as_of, now_ms))


def check_number(what: str, number: int) -> int:
    """The number, if requests can have it. Raises ``InputError``."""
    if abs(number) > OFFSET_MAX:
        raise InputError(f"{what} {number} is too large")
    return number


def add_topics(request: reset_pb2.ResetOffsetsRequest, texts: Iterable[str]) -> None:
    """Restrict a request to topics, or to partitions of them. Raises ``InputError``."""
    for name, partitions in parse_partitions(texts).items():
        request.topics.add(topic_name=name, partitions=partitions or ())


def make_second_request(
    request: reset_pb2.ResetOffsetsRequest,
    shown: reset_pb2.ResetOffsetsResponse,
    request_id: str,
) -> reset_pb2.ResetOffsetsRequest:
    """The request that sets what a preview has shown, and fails if the group has changed since.

    An undo is of the change that the preview has shown, and of no other.
    """
    if request.WhichOneof("to") == "undo":
        second = reset_pb2.ResetOffsetsRequest()
        second.CopyFrom(request)
        second.validate_only = False
        second.undo.log_offset = shown.undone.log_offset
        second.preview, second.request_id = shown.preview, request_id
        return second
    second = reset_pb2.ResetOffsetsRequest(
        group_id=request.group_id,
        clamp=request.clamp,
        create_group=request.create_group,
        preview=shown.preview,
        request_id=request_id,
    )
    topics: dict[str, types_pb2.TopicOffsets] = {}
    for row in shown.partitions:
        topic = topics.setdefault(row.topic_name, types_pb2.TopicOffsets(topic_name=row.topic_name))
        topic.partitions.add(partition=row.partition, offset=row.offset_after)
    second.plan.topics.extend(topics.values())
    return second


# ------------------------------------------------------------------------------------------- plans


def parse_plan(plan: PlanText, group_id: str) -> reset_pb2.ResetPlan:
    """Parse a CSV without a header, as Kafka's tool writes it: topic, partition, offset.

    With a group in front only its lines count. Raises ``InputError``.
    """
    topics: dict[str, dict[int, int]] = {}
    try:
        for number, row in enumerate(csv.reader(io.StringIO(plan.text, newline="")), 1):
            if number > _PLAN_ROWS_MAX:
                raise InputError(f"{plan.name} has more than {_PLAN_ROWS_MAX} lines")
            if row and (len(row) != 4 or row[0] == group_id):
                name, partition, offset = _parse_row(plan.name, number, row[-3:])
                rows = topics.setdefault(name, {})
                if partition in rows:
                    raise InputError(f"{plan.name}:{number}: {name}-{partition} is given twice")
                rows[partition] = offset
    except csv.Error as error:
        raise InputError(f"{plan.name} is not CSV: {error}") from error
    if not topics:
        raise InputError(f"{plan.name} has no offsets of group {group_id}")
    return reset_pb2.ResetPlan(
        topics=[
            types_pb2.TopicOffsets(
                topic_name=name,
                partitions=[
                    types_pb2.PartitionOffset(partition=partition, offset=offset)
                    for partition, offset in rows.items()
                ],
            )
            for name, rows in topics.items()
        ]
    )


def _parse_row(name: str, number: int, row: list[str]) -> tuple[str, int, int]:
    if len(row) == 3 and row[0] and all(_is_number(text) for text in row[1:]):
        partition, offset = int(row[1]), int(row[2])
        if partition < 1 << 31 and offset <= OFFSET_MAX:
            return row[0], partition, offset
    raise InputError(
        f"{name}:{number}: write topic,partition,offset, or group,topic,partition,offset"
    )


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 19
