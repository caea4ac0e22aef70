"""How much CPU an assignment may take, at the sizes that are promised."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from assignors.registry import ASSIGNORS
from bench.assignors.muster_assignors import Shape, choose_topics, make_joining, make_problem

MOST_CALLS = 60

pytestmark = pytest.mark.alone


def find_quickest_ms(call: Callable[[], object], limit_ms: float) -> float:
    """The least CPU time of many calls; what else the machine does makes none of them quicker."""
    least = float("inf")
    for _ in range(MOST_CALLS):
        began = time.process_time()
        call()
        least = min(least, (time.process_time() - began) * 1000)
        if least <= limit_ms:
            break
    return least


@pytest.mark.parametrize(
    ("shape", "full_ms", "one_joins_ms"),
    [
        (Shape("uniform", "homogeneous", 10_000, 100, 100_000), 1.5, 1.0),
        (Shape("range", "homogeneous", 10_000, 100, 100_000), 5.0, 5.0),
        (Shape("uniform", "homogeneous", 100_000, 100, 1_000_000), 50.0, 50.0),
        (Shape("uniform", "buckets", 1_000, 100, 10_000), 8.0, 5.0),
        (Shape("uniform", "overlapping", 1_000, 100, 10_000), 8.0, 5.0),
    ],
    ids=lambda value: (
        f"{value.assignor}-{value.members}-{value.subscriptions}"
        if isinstance(value, Shape)
        else ""
    ),
)
def test_an_assignment_takes_no_longer(shape: Shape, full_ms: float, one_joins_ms: float) -> None:
    assignor = ASSIGNORS[shape.assignor]
    topics_of = choose_topics(shape)
    for problem, limit_ms in (
        (make_problem(shape, topics_of), full_ms),
        (make_joining(shape, topics_of, assignor), one_joins_ms),
    ):
        took_ms = find_quickest_ms(lambda given=problem: assignor.assign(given), limit_ms)
        assert took_ms <= limit_ms
