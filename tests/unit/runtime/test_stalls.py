"""How long one turn of the loop takes with a large group, by the time of the processor."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator

import pytest

from model.settings import CoordinatorSettings
from tests.sim.server import VirtualServer

MEMBERS = 2_000
PARTITIONS = 20_000
LIMIT_S = 0.15
"""Of a busy machine."""
LIMIT_SHARE = 0.4
"""Of all that was to be done; without slices nearly all of it is in one turn."""


@pytest.fixture
def _collector_at_rest() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.alone
@pytest.mark.usefixtures("_collector_at_rest")
def test_a_target_that_moves_everything_takes_many_short_turns() -> None:
    settings = CoordinatorSettings(group_consumer_assignors=("range",))
    server = VirtualServer({"foo": PARTITIONS}, settings=settings)
    joins = [server.submit(server.join_command("g", f"m{n}", ["foo"])) for n in range(MEMBERS)]
    longest = total = 0.0
    while not all(join.is_answered for join in joins) or server.runtime._targets.in_flight:
        began = time.thread_time()
        server.scheduler.step()
        took = time.thread_time() - began
        longest, total = max(longest, took), total + took
    assert server.group("g").member_count == MEMBERS
    assert longest < LIMIT_S, f"{longest:.3f} s of {total:.3f} s in one turn"
    assert longest < LIMIT_SHARE * total, f"{longest:.3f} s of {total:.3f} s in one turn"
