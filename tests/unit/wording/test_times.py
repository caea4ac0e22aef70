"""Times and past positions, as people write them."""

from __future__ import annotations

import pytest

from muster.v1 import types_pb2
from wording.errors import InputError
from wording.partitions import parse_partitions
from wording.positions import parse_as_of, render_position
from wording.times import parse_iso_duration_ms, parse_moment, render_second, render_time

NOW_MS = 1_000_000_000


@pytest.mark.parametrize(
    ("text", "moment_ms"),
    [
        ("5", 5),
        ("90m", NOW_MS - 5_400_000),
        ("250ms", NOW_MS - 250),
        ("1970-01-01T00:00:02", 2_000),
        ("1970-01-01T01:00:02+01:00", 2_000),
    ],
)
def test_a_time_is_of_utc_or_an_age(text: str, moment_ms: int) -> None:
    assert parse_moment("since", text, lambda: NOW_MS) == moment_ms


@pytest.mark.parametrize("text", ["", "soon", "1969-01-01", "9" * 25, "9" * 5_000, "٣", "4y"])
def test_what_is_no_time_is_said(text: str) -> None:
    with pytest.raises(InputError, match="since "):
        parse_moment("since", text, lambda: NOW_MS)


def test_positions_and_back() -> None:
    assert parse_as_of("at", "offset:7", lambda: NOW_MS) == types_pb2.AsOf(offset=7)
    assert parse_as_of("at", "9", lambda: NOW_MS) == types_pb2.AsOf(timestamp_ms=9)
    for text in ("9" * 20, "9" * 15 + "d"):
        with pytest.raises(InputError, match="too large"):
            parse_as_of("at", text, lambda: NOW_MS)
    position = types_pb2.LogPosition(partition=3, offset=7, timestamp_ms=1_000)
    assert render_position(position) == (
        "as of offset 7 of log partition 3, 1970-01-01T00:00:01.000Z"
    )
    nothing = types_pb2.LogPosition(partition=3)
    assert render_position(nothing) == "as of the beginning of log partition 3"


def test_a_time_out_of_all_calendars_stays_a_number() -> None:
    assert render_time(1 << 62) == str(1 << 62)
    assert render_second(10**17) == str(10**17)


def test_times_to_the_second_are_the_nearest() -> None:
    assert render_second(1_499) == "1970-01-01T00:00:01Z"
    assert render_second(1_500) == "1970-01-01T00:00:02Z"


def test_durations_are_those_of_kafkas_tool() -> None:
    assert parse_iso_duration_ms("by", "P1DT2H30M5S") == 1_000 * (86_400 + 9_000 + 5)
    for text in ("P", "1H", "PT", "P1Y"):
        with pytest.raises(InputError, match="by "):
            parse_iso_duration_ms("by", text)


def test_partitions_are_of_a_topic_once() -> None:
    assert parse_partitions(["a", "b:1,0,1"]) == {"a": None, "b": [1, 0]}
    for texts in (["a:"], [":1"], ["a", "a:1"], ["a:x"], ["a:" + "9" * 5_000], ["a:9999999999"]):
        with pytest.raises(InputError):
            parse_partitions(texts)
