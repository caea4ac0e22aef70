"""Watches for records: which are called, in which iteration, and the cost of the others."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import pytest

from gateway.topics.fetch_waits import WAKE_KEYS, WIDE_KEYS, DataWatches
from gateway.topics.topic_catalogue import PartitionKey
from model.ids import TopicId

TOPIC = TopicId(b"t" * 16)


class Turns:
    """The calls scheduled for later iterations."""

    def __init__(self) -> None:
        self.soon: deque[Callable[[], None]] = deque()

    def take(self) -> None:
        """Run one iteration."""
        for _ in range(len(self.soon)):
            self.soon.popleft()()


def key(number: int) -> PartitionKey:
    return PartitionKey(TOPIC, number)


def keys(count: int) -> dict[PartitionKey, None]:
    return dict.fromkeys(map(key, range(count)))


@pytest.fixture
def turns() -> Turns:
    return Turns()


@pytest.fixture
def watches(turns: Turns) -> DataWatches:
    return DataWatches(turns.soon.append)


@pytest.mark.parametrize("count", [1, WIDE_KEYS, WIDE_KEYS + 1])
def test_it_is_called_once_in_a_turn_after_enough_has_come(
    turns: Turns, watches: DataWatches, count: int
) -> None:
    called: list[int] = []
    watches.add(keys(count), 10, lambda: called.append(1))
    watches.on_append(key(count - 1), 4)
    watches.on_append(key(count), 100)
    turns.take()
    assert not called
    watches.on_append(key(0), 6)
    watches.on_append(key(0), 6)
    assert not called
    turns.take()
    turns.take()
    watches.on_append(key(0), 6)
    turns.take()
    assert called == [1]
    assert len(watches) == 0
    assert not watches.watched()


@pytest.mark.parametrize("count", [1, WIDE_KEYS + 1])
def test_one_that_is_cancelled_is_not_called(
    turns: Turns, watches: DataWatches, count: int
) -> None:
    called: list[int] = []
    watch = watches.add(keys(count), 1, lambda: called.append(1))
    watches.on_append(key(0), 1)
    watch.cancel()
    watch.cancel()
    watch.end()
    turns.take()
    assert not called
    assert len(watches) == 0


@pytest.mark.parametrize("count", [1, WIDE_KEYS + 1])
def test_it_is_called_when_a_partition_is_gone(
    turns: Turns, watches: DataWatches, count: int
) -> None:
    called: list[int] = []
    watches.add(keys(count), 1, lambda: called.append(1))
    watches.on_gone([key(0)])
    turns.take()
    assert called == [1]


def test_it_may_be_ended_by_who_waits(turns: Turns, watches: DataWatches) -> None:
    called: list[int] = []
    watches.add(keys(1), 1, lambda: called.append(1)).end()
    assert not called
    turns.take()
    assert called == [1]


@pytest.mark.parametrize("count", [1, 50, WIDE_KEYS + 1])
def test_those_whose_waits_are_over_together_are_called_in_parts(
    turns: Turns, watches: DataWatches, count: int
) -> None:
    """Bug: an append called every watch, and each then ran a slice in the same iteration."""
    called: list[int] = []
    for number in range(2 * WAKE_KEYS + 1):
        watches.add(keys(count), 1, lambda number=number: called.append(number))
    watches.on_append(key(0), 1)
    most = 0
    while turns.soon:
        before = len(called)
        turns.take()
        most = max(most, len(called) - before)
    assert called == list(range(2 * WAKE_KEYS + 1))
    assert most == -(-WAKE_KEYS // min(count, WIDE_KEYS))
