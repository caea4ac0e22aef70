"""The simulation: seeds pass, each is what a seed must be, and the same seed is the same trace."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.groups import CHECKOUT
from tests.sim.campaign import format_totals, run_seeds
from tests.sim.run import run_seed

SHARDS = 2
CPU_SECONDS = float(os.environ.get("SIM_CPU_S") or 20)
"""For all shards together."""

DETERMINISTIC_SEEDS = (3, 11)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("shard", range(SHARDS))
def test_seeds_pass(shard: int, record_property: Callable[[str, object], None]) -> None:
    """As many seeds as the CPU time allows; with xdist the shards run beside each other."""
    totals = run_seeds(itertools.count(shard, SHARDS), CPU_SECONDS / SHARDS)
    record_property(
        "note", f"simulation: {totals.seeds} seeds in {totals.cpu_seconds:.0f} s of CPU"
    )
    print(format_totals(totals))
    assert not totals.failures, format_totals(totals)
    assert not totals.unreached(), format_totals(totals)
    assert totals.seeds > 0


@pytest.mark.parametrize("seed", DETERMINISTIC_SEEDS)
def test_the_same_seed_gives_the_same_trace(seed: int) -> None:
    first, second = run_seed(seed), run_seed(seed)
    assert first == second
    assert first.trace != run_seed(seed + 1).trace


def test_the_same_seed_gives_the_same_trace_in_another_process() -> None:
    """Trigger: names are hashed differently in each process."""
    code = "from tests.sim.run import run_seed; print(run_seed(5).trace)"
    traces = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=CHECKOUT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(CHECKOUT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(traces) == 1
