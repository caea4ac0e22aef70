"""Sequences of requests are answered by Muster as by a real Kafka."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.differential.generator import STEPS, generate, has_patterns
from tests.differential.runner import Failure, Peers
from tests.differential.sides.peers import prepare, run_peers

# However slow the machine is: how long it may take is said with its group.
pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

SEQUENCES = 30
AT_ONCE = 20
SHRINK_S = 30.0
SHOWN = 3


async def compare(peers: Peers) -> list[Failure]:
    """All sequences; the first failures are made short."""
    await prepare(peers)
    seeds = sorted(range(SEQUENCES), key=lambda seed: not has_patterns(seed))
    failures = await peers.run_all(map(generate, seeds), AT_ONCE)
    shown = [await peers.shrink(failure, SHRINK_S / SHOWN) for failure in failures[:SHOWN]]
    return [*shown, *failures[SHOWN:]]


def test_the_same_requests_are_answered_as_by_kafka(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    began = time.monotonic()
    with run_peers(tmp_path) as peers:
        failures = asyncio.run(compare(peers))
    took_s = time.monotonic() - began
    assert not failures, "\n\n".join(failure.show() for failure in failures)
    steps = sum(peers.tally.steps.values())
    record_property("note", f"differential: {SEQUENCES} sequences, {steps} steps in {took_s:.0f} s")
    assert steps >= SEQUENCES * STEPS
    assert len(peers.tally.steps) >= 15, peers.tally.steps
    assert len(peers.tally.codes) >= 15, peers.tally.codes
