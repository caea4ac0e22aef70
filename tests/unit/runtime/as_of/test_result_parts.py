"""Results of workers in parts: the same result, and no part is long."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from coordinator.runtime.as_of.history_worker import PastOwnerships
from coordinator.runtime.as_of.result_parts import PART_ROWS, decode_part, encode_parts
from model.ids import LogOffset, LogPartition, MemberId, TopicId, TopicName
from model.past.as_of import LogPosition
from model.past.ownerships import Lane, Moment, Ownerships, OwningMember

POSITION = LogPosition(LogPartition(1), LogOffset(2), 3)
MANY = 5 * PART_ROWS + 1
PART_BYTES_MAX = 20_000


def make_past(count: int) -> PastOwnerships:
    """Members, moments and spans of one lane, so many of each."""
    members = tuple(OwningMember(MemberId(f"m{n}"), "c", "/h", "") for n in range(count))
    moments = tuple(Moment(n, n, n, n, n) for n in range(count))
    spans = tuple((n, n, -1, False) for n in range(count))
    lanes = ((Lane(TopicName("t"), TopicId(b"x" * 16), 0), spans),)
    return PastOwnerships(POSITION, Ownerships(POSITION, members, moments, lanes, True, True))


def decode(parts: list[bytes]) -> Any:
    decoded: list[Any] = []
    for data in parts:
        decoded.append(decode_part(data, decoded))
    return decoded[-1]


@pytest.mark.parametrize("count", [0, 1, PART_ROWS, PART_ROWS + 1, MANY])
def test_the_result_is_what_it_was(count: int) -> None:
    past = make_past(count)
    assert decode(encode_parts(past)) == past


def test_no_part_is_long() -> None:
    assert len(pickle.dumps(make_past(MANY))) > 2 * PART_BYTES_MAX
    parts = encode_parts(make_past(MANY))
    assert len(parts) >= 3 * MANY / PART_ROWS
    assert max(map(len, parts)) < PART_BYTES_MAX


def test_long_tuples_lie_in_each_other() -> None:
    rows = tuple(tuple(range(number, number + 2 * PART_ROWS)) for number in range(2 * PART_ROWS))
    assert decode(encode_parts(("x", rows))) == ("x", rows)
