"""The progress of a query as committed offsets, without a query: what is committed and when."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

import pytest

pytest.importorskip("pyspark")

from pipeline.progress import CommitProgress, Offsets, Place, read_progress

DEADLINE_S = 60.0


def test_the_ends_of_sources_are_topics_partitions_and_offsets() -> None:
    kafka = '{"orders":{"0":23,"1":-1},"returns":{"2":5}}'
    assert read_progress(['{"orders":{"0":23},"returns":{"2":5}}']) == {
        ("orders", 0): 23,
        ("returns", 2): 5,
    }
    assert read_progress([kafka]) == {}
    assert read_progress(['{"t":{"0":9,"1":4}}', '{"t":{"0":7}}']) == {("t", 0): 7, ("t", 1): 4}


@pytest.mark.parametrize(
    "text", [None, "", "12", "null", "[1]", "no JSON", '{"logOffset":3}', '{"t":{"x":1}}']
)
def test_sources_without_partitions_are_left_out(text: str | None) -> None:
    assert read_progress([text, '{"t":{"0":1}}']) == {("t", 0): 1}


class Coordinator:
    """Records the requested commits, and answers when allowed."""

    def __init__(self) -> None:
        self.seen: list[dict[Place, int]] = []
        self.failures = 0
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.asked = threading.Semaphore(0)

    def commit(self, offsets: Offsets, metadata: str) -> None:
        self.asked.release()
        assert self.may_answer.wait(DEADLINE_S)
        if self.failures:
            self.failures -= 1
            raise ConnectionError("nobody listens")
        self.seen.append(dict(offsets))


def at(offset: int) -> dict[Place, int]:
    return {("t", 0): offset}


@pytest.fixture
def coordinator() -> Coordinator:
    return Coordinator()


@pytest.fixture
def make_listener(
    coordinator: Coordinator, request: pytest.FixtureRequest
) -> Callable[..., CommitProgress]:
    def make(**options: float) -> CommitProgress:
        listener = CommitProgress("query", coordinator.commit, **options)
        request.addfinalizer(lambda: listener.close(0))
        return listener

    return make


Make = Callable[..., CommitProgress]


def test_the_last_progress_alone_is_committed_where_there_is_no_time_for_more(
    coordinator: Coordinator, make_listener: Make
) -> None:
    coordinator.may_answer.clear()
    listener = make_listener()
    listener.offer(at(1), "batch 0")
    assert coordinator.asked.acquire(timeout=DEADLINE_S)
    listener.offer(at(2), "batch 1")
    listener.offer(at(3), "batch 2")
    coordinator.may_answer.set()
    assert listener.close(DEADLINE_S)
    assert coordinator.seen == [at(1), at(3)]
    assert listener.committed == at(3)


def test_a_coordinator_that_does_not_answer_is_asked_again(
    coordinator: Coordinator, make_listener: Make
) -> None:
    coordinator.failures = 1
    listener = make_listener()
    listener.offer(at(1), "batch 0")
    assert listener.close(DEADLINE_S)
    assert coordinator.seen == [at(1)]
    assert listener.last_error is None


@pytest.mark.parametrize(("refresh_s", "commits"), [(3_600.0, 1), (0.0, 2)])
def test_what_does_not_change_is_committed_again_only_when_it_is_old(
    coordinator: Coordinator, make_listener: Make, refresh_s: float, commits: int
) -> None:
    listener = make_listener(refresh_s=refresh_s)
    listener.offer(at(1), "batch 0")
    assert wait_until_committed(listener, at(1))
    listener.offer(at(1), "batch 1")
    assert listener.close(DEADLINE_S)
    assert coordinator.seen == [at(1)] * commits


def test_closing_does_not_wait_for_ever(coordinator: Coordinator, make_listener: Make) -> None:
    coordinator.failures = 1_000
    listener = make_listener()
    listener.offer(at(1), "batch 0")
    assert coordinator.asked.acquire(timeout=DEADLINE_S)
    assert not listener.close(0.01)
    assert listener.committed == {}


def test_nothing_is_committed_for_a_query_that_has_no_partitions(
    coordinator: Coordinator, make_listener: Make
) -> None:
    listener = make_listener()
    listener.offer(read_progress(['{"logOffset":3}']), "batch 0")
    assert listener.close(DEADLINE_S)
    assert coordinator.seen == []


def wait_until_committed(listener: CommitProgress, offsets: Mapping[Place, int]) -> bool:
    with listener._changed:
        return listener._changed.wait_for(lambda: listener._committed == offsets, DEADLINE_S)
