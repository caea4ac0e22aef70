"""Where `muster group reset` and `seek` set offsets: options and texts as requests have them."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cli.errors import CommandError, ExitCode
from cli.log.as_of_option import parse_as_of

if TYPE_CHECKING:
    from muster.v1 import reset_pb2

_DURATION = re.compile(
    r"P(?:(?P<d>\d{1,6})D)?(?:T(?:(?P<h>\d{1,6})H)?(?:(?P<m>\d{1,6})M)?(?:(?P<s>\d{1,6})S)?)?"
)
_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_NUMBER = re.compile(r"[+-]?\d{1,19}")
_OFFSET_MAX = (1 << 63) - 1
_PLAN_ROWS_MAX = 100_000


@dataclass(frozen=True, slots=True)
class Strategy:
    """The options of `muster group reset` that say where to; exactly one is given."""

    to_earliest: bool = False
    to_latest: bool = False
    to_current: bool = False
    to_datetime: str | None = None
    by_duration: str | None = None
    shift_by: int | None = None
    to_offset: int | None = None
    from_file: Path | None = None
    to_group: str | None = None
    to_as_of: str | None = None

    def fill(self, request: reset_pb2.ResetOffsetsRequest, now_ms: Callable[[], int]) -> None:
        """Set ``to`` of the request. Raises ``CommandError`` unless exactly one option is given."""
        from muster.v1 import reset_pb2

        given = [
            name.replace("_", "-")
            for name in self.__slots__
            if (value := getattr(self, name)) is not None and value is not False
        ]
        if len(given) != 1:
            raise CommandError(
                "say where to, with exactly one of --to-earliest, --to-latest, --to-current, "
                "--to-datetime, --by-duration, --shift-by, --to-offset, --from-file, --to-group "
                "and --to-as-of",
                ExitCode.USAGE,
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
            request.timestamp_ms = max(now_ms() - parse_iso_duration_ms(self.by_duration), 0)
        elif self.shift_by is not None:
            request.shift_by = _check_number("--shift-by", self.shift_by)
        elif self.to_offset is not None:
            request.offset = _check_number("--to-offset", self.to_offset)
        elif self.from_file is not None:
            request.plan.CopyFrom(read_plan(self.from_file, request.group_id))
        elif self.to_group is not None:
            request.other_group_id = self.to_group
        elif self.to_as_of is not None:
            request.as_of.CopyFrom(parse_as_of(self.to_as_of, "--to-as-of"))


def fill_position(
    request: reset_pb2.ResetOffsetsRequest, text: str, now_ms: Callable[[], int]
) -> None:
    """Set ``to`` of a request to `start`, `end`, `N`, `+N`, `-N` or `@TIME`."""
    from muster.v1 import reset_pb2

    if text == "start":
        request.position = reset_pb2.RESET_POSITION_EARLIEST
    elif text == "end":
        request.position = reset_pb2.RESET_POSITION_LATEST
    elif text.startswith("@"):
        # An age may have a sign: it is in the past anyway.
        request.timestamp_ms = parse_moment("--to", text[1:].removeprefix("-"), now_ms)
    elif _NUMBER.fullmatch(text):
        number = _check_number("--to", int(text))
        if text[0] in "+-":
            request.shift_by = number
        else:
            request.offset = number
    else:
        raise CommandError(
            f"--to {text!r} is not a position: use start, end, an offset, +N, -N, or @ and a time "
            "or an age, such as @2026-11-21T20:57:13Z or @90m",
            ExitCode.USAGE,
        )


def parse_moment(option: str, text: str, now_ms: Callable[[], int]) -> int:
    """Parse a time, ms since 1970, or an age, into ms since 1970."""
    from cli.log.record_filters import parse_time

    moment_ms = parse_time(option, text, now_ms)
    if not 0 <= moment_ms <= _OFFSET_MAX:
        raise CommandError(f"{option} {text!r} is not a time since 1970", ExitCode.USAGE)
    return moment_ms


def parse_iso_duration_ms(text: str) -> int:
    """Parse an ISO 8601 duration as Kafka's tool takes it: ``P1DT2H30M5S``."""
    match = _DURATION.fullmatch(text)
    parts = {} if match is None else {k: int(v) for k, v in match.groupdict().items() if v}
    if not parts:
        raise CommandError(
            f"--by-duration {text!r} is not a duration: use PnDTnHnMnS, such as PT1H30M",
            ExitCode.USAGE,
        )
    return 1_000 * sum(_SECONDS[unit] * count for unit, count in parts.items())


def _check_number(option: str, number: int) -> int:
    if abs(number) > _OFFSET_MAX:
        raise CommandError(f"{option} {number} is too large", ExitCode.USAGE)
    return number


def read_plan(path: Path, group_id: str) -> reset_pb2.ResetPlan:
    """Read a CSV without a header, as Kafka's tool writes it: topic, partition, offset.

    With a group in front only its lines count.
    """
    from muster.v1 import reset_pb2, types_pb2

    topics: dict[str, dict[int, int]] = {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for number, row in enumerate(csv.reader(file), 1):
                if number > _PLAN_ROWS_MAX:
                    raise CommandError(f"{path} has more than {_PLAN_ROWS_MAX} lines")
                if row and (len(row) != 4 or row[0] == group_id):
                    name, partition, offset = _parse_row(path, number, row[-3:])
                    rows = topics.setdefault(name, {})
                    if partition in rows:
                        raise CommandError(
                            f"{path}:{number}: {name}-{partition} is given twice", ExitCode.USAGE
                        )
                    rows[partition] = offset
    except OSError as error:
        raise CommandError(f"cannot read {path}: {error.strerror}", ExitCode.USAGE) from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise CommandError(f"{path} is not CSV: {error}", ExitCode.USAGE) from error
    if not topics:
        raise CommandError(f"{path} has no offsets of group {group_id}", ExitCode.USAGE)
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


def _parse_row(path: Path, number: int, row: list[str]) -> tuple[str, int, int]:
    if len(row) == 3 and row[0] and all(_is_number(text) for text in row[1:]):
        partition, offset = int(row[1]), int(row[2])
        if partition < 1 << 31 and offset <= _OFFSET_MAX:
            return row[0], partition, offset
    raise CommandError(
        f"{path}:{number}: write topic,partition,offset, or group,topic,partition,offset",
        ExitCode.USAGE,
    )


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 19
