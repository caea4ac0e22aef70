"""When garbage is collected: in idle turns, and what has lived long never again."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from cli.serve.collector import FULL_EVERY, OLD_MAX, YOUNG_MIN, GarbageCollector


class Node:
    """Something that a weak reference may name."""

    other: Node


@pytest.fixture
def collector() -> Iterator[GarbageCollector]:
    thresholds = gc.get_threshold()
    collector = GarbageCollector()
    collector.settle()
    # Nothing is collected but by request.
    gc.set_threshold(1_000_000, 1_000, 1_000)
    gc.collect()
    yield collector
    collector.stop()
    gc.unfreeze()
    gc.set_threshold(*thresholds)


def make_cycle() -> weakref.ref[Node]:
    one, other = Node(), Node()
    one.other, other.other = other, one
    return weakref.ref(one)


def allocate(count: int) -> list[list[int]]:
    return [[] for _ in range(count)]


def test_an_idle_turn_collects_what_became_garbage(collector: GarbageCollector) -> None:
    found = make_cycle()
    kept = allocate(YOUNG_MIN)
    collector.collect_idle()
    assert found() is None
    assert len(kept) == YOUNG_MIN


def test_a_few_new_objects_are_left_for_later(collector: GarbageCollector) -> None:
    found = make_cycle()
    collector.collect_idle()
    assert found() is not None


def test_garbage_of_middle_age_is_collected_after_some_turns(collector: GarbageCollector) -> None:
    one, other = Node(), Node()
    one.other, other.other = other, one
    found = weakref.ref(one)
    kept = []
    for turn in range(FULL_EVERY + 2):
        kept.append(allocate(YOUNG_MIN))
        collector.collect_idle()
        if turn == 0:
            del one, other
    assert found() is None


def test_many_survivors_are_frozen(collector: GarbageCollector) -> None:
    before = gc.get_freeze_count()
    kept = allocate(OLD_MAX + 1)
    gc.collect()
    assert gc.get_freeze_count() >= before + len(kept)
    assert len(gc.get_objects(2)) < OLD_MAX


def test_nothing_is_collected_while_it_is_disabled(collector: GarbageCollector) -> None:
    found = make_cycle()
    kept = allocate(YOUNG_MIN)
    gc.disable()
    try:
        collector.collect_idle()
        assert found() is not None
    finally:
        gc.enable()
    assert len(kept) == YOUNG_MIN


def test_each_collection_is_measured_until_it_stops(collector: GarbageCollector) -> None:
    before, sum_s = sum(collector.pauses.counts), collector.pauses.sum_s
    gc.collect()
    gc.collect(0)
    assert sum(collector.pauses.counts) == before + 2
    assert collector.pauses.sum_s > sum_s
    collector.stop()
    gc.collect()
    assert sum(collector.pauses.counts) == before + 2
