"""Reads of a group's past state: which positions can be answered, and the position returned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from model.ids import GroupId, LogOffset, LogPartition
from model.past.as_of import AsOf, AsOfOffset, AsOfTimestamp, LogPosition
from storage.codec.batch_encoding import encode_batch
from storage.log.group_history import (
    BeyondHistory,
    GroupHistory,
    GroupQuestion,
    InFuture,
    LogTooShort,
    fold_group,
)
from storage.log.trim import NO_HISTORY_START, HistoryStart
from storage.log_store import read_batch_range
from tests.support.storage.appends import offset_key, offset_value

P = LogPartition(3)
GROUP = GroupId("g")
NOW_MS = 10_000


class Log:
    """Batches in a list."""

    def __init__(self, batches: Sequence[bytes]) -> None:
        self.batches = batches

    def read_log(self, partition: LogPartition, start: LogOffset) -> Iterable[bytes]:
        assert partition == P
        return [batch for batch in self.batches if sum(read_batch_range(batch)) > start]


def commits(base: int, *offsets: int, time: int, group: str = "g") -> bytes:
    pairs = [(offset_key(group, n), offset_value(offset)) for n, offset in enumerate(offsets)]
    return encode_batch(base, pairs, time)


def ask(
    log: Sequence[bytes],
    as_of: AsOf,
    *,
    start: HistoryStart = NO_HISTORY_START,
    end: int | None = None,
) -> GroupHistory:
    log_end = sum(read_batch_range(log[-1])) if log else 0
    question = GroupQuestion(P, GROUP, as_of, LogOffset(log_end if end is None else end), NOW_MS)
    return fold_group(Log(log), question, start)


def at(offset: int) -> AsOfOffset:
    return AsOfOffset(LogOffset(offset))


THREE = [
    commits(0, 1, time=100),
    commits(1, 2, 2, time=200),
    commits(3, 3, time=200),
    commits(4, 4, time=300),
]


@pytest.mark.parametrize(
    ("as_of", "offset", "timestamp_ms"),
    [
        (AsOfTimestamp(0), -1, -1),
        (AsOfTimestamp(99), -1, -1),
        (AsOfTimestamp(100), 0, 100),
        (AsOfTimestamp(199), 0, 100),
        (AsOfTimestamp(200), 3, 200),
        (AsOfTimestamp(NOW_MS), 4, 300),
        (at(0), 0, 100),
        (at(1), 2, 200),
        (at(2), 2, 200),
        (at(3), 3, 200),
        (at(4), 4, 300),
    ],
)
def test_a_position_is_the_end_of_a_batch(as_of: AsOf, offset: int, timestamp_ms: int) -> None:
    history = ask(THREE, as_of)
    assert history.position == LogPosition(P, LogOffset(offset), timestamp_ms)
    assert len(history.latest) == {-1: 0, 0: 1}.get(offset, 2)


def test_the_log_counts_up_to_the_first_later_batch_whatever_comes_after_it() -> None:
    jumped = [commits(0, 1, time=100), commits(1, 2, time=900), commits(2, 3, time=200)]
    assert ask(jumped, AsOfTimestamp(200)).position.offset == 0
    assert ask(jumped, AsOfTimestamp(900)).position.offset == 2


def test_behind_a_batch_that_is_dated_ahead_offsets_are_answered_and_no_times() -> None:
    """Trimming may make a timestamp unanswerable, but must not change the answer for it."""
    ahead, now = NOW_MS + 500, AsOfTimestamp(NOW_MS)
    log = [commits(0, 1, time=100), commits(1, 2, time=ahead), commits(2, 3, time=NOW_MS)]
    assert ask(log, now).position.offset == 0
    start = HistoryStart(LogOffset(2), ahead)
    with pytest.raises(BeyondHistory) as caught:
        ask(log[2:], now, start=start)
    assert caught.value.start == start
    assert ask(log[2:], at(2), start=start).position.offset == 2


def test_the_future_is_not_known() -> None:
    for as_of in (at(5), at(1 << 40), AsOfTimestamp(NOW_MS + 1)):
        with pytest.raises(InFuture) as caught:
            ask(THREE, as_of)
        assert caught.value.last == LogPosition(P, LogOffset(4), 300)
    with pytest.raises(InFuture):
        ask([], at(0))
    assert ask([], AsOfTimestamp(NOW_MS)).position.offset == -1


def test_a_log_that_is_ahead_of_the_clock_is_no_future() -> None:
    ahead = [commits(0, 1, time=NOW_MS + 500)]
    assert ask(ahead, AsOfTimestamp(NOW_MS + 500)).position.offset == 0
    with pytest.raises(InFuture):
        ask(ahead, AsOfTimestamp(NOW_MS + 501))


def test_what_is_not_durable_does_not_count() -> None:
    history = ask(THREE, AsOfTimestamp(NOW_MS), end=3)
    assert history.position == LogPosition(P, LogOffset(2), 200)
    with pytest.raises(InFuture):
        ask(THREE, at(3), end=3)


def test_a_log_that_ends_before_it_should_is_not_taken_for_the_whole() -> None:
    with pytest.raises(LogTooShort):
        ask(THREE, AsOfTimestamp(NOW_MS), end=6)


def test_before_the_history_start_nothing_is_told() -> None:
    start = HistoryStart(LogOffset(3), 200)
    left = THREE[1:]
    for as_of in (at(1), AsOfTimestamp(199)):
        with pytest.raises(BeyondHistory) as caught:
            ask(left, as_of, start=start)
        assert caught.value.start == start
    for as_of in (at(2), AsOfTimestamp(200)):
        ask(left, as_of, start=start)
    nothing_left = THREE[3:]
    position = ask(nothing_left, at(3), start=HistoryStart(LogOffset(4), 250)).position
    assert position == LogPosition(P, LogOffset(3), 250)


def test_offsets_that_are_missing_below_the_history_start_are_those_that_trimming_took() -> None:
    left = [commits(2, 2, time=200), *THREE[3:]]
    assert ask(left, at(4), start=HistoryStart(LogOffset(4), 200)).position.offset == 4


class TestCompactedByKafka:
    """Batches at 0, 1 to 2, 7 and 8; the records between were superseded at or before 8."""

    log = (*THREE[:2], commits(7, 7, time=700), commits(8, 8, time=800))

    @pytest.mark.parametrize("offset", [0, 2])
    def test_before_the_first_missing_offset_all_is_there(self, offset: int) -> None:
        assert ask(self.log, at(offset)).position.offset == offset

    @pytest.mark.parametrize("as_of", [at(7), at(8), AsOfTimestamp(700), AsOfTimestamp(800)])
    def test_behind_the_last_missing_offset_too(self, as_of: AsOf) -> None:
        assert ask(self.log, as_of).position.offset in (7, 8)

    def test_between_missing_offsets_something_may_be_missing_that_counted(self) -> None:
        log = (*self.log, commits(12, 12, time=1_200), commits(13, 13, time=1_300))
        for as_of in (at(7), at(8), AsOfTimestamp(700), AsOfTimestamp(1_199)):
            with pytest.raises(BeyondHistory) as caught:
                ask(log, as_of)
            assert caught.value.start == HistoryStart(LogOffset(13), 1_200)
        assert ask(log, at(12)).position.offset == 12
        assert ask(log, AsOfTimestamp(1_200)).position.offset == 12
