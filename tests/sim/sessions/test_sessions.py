"""The simulation of sessions: seeds pass, the same seed is the same trace, and faults are found."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.groups import CHECKOUT
from tests.sim.sessions.campaign import format_totals, run_seeds
from tests.sim.sessions.put_back import PUT_BACK, PutBack, find
from tests.sim.sessions.run import run_seed

CPU_SECONDS = float(os.environ.get("SIM_SESSIONS_CPU_S") or 10)


@pytest.mark.timeout(900)
def test_seeds_pass(record_property: Callable[[str, object], None]) -> None:
    """As many seeds as the CPU time allows."""
    totals = run_seeds(itertools.count(), cpu_seconds=CPU_SECONDS)
    record_property("note", f"sessions: {totals.seeds} seeds in {totals.cpu_seconds:.0f} s of CPU")
    assert not totals.failures, format_totals(totals)
    assert totals.seeds > 0


@pytest.mark.parametrize(
    "fault", PUT_BACK, ids=[f"{each.patch.__name__}-{each.names[0]}" for each in PUT_BACK]
)
def test_a_fault_that_is_put_back_is_found(fault: PutBack) -> None:
    """The kept seed finds it, and finds nothing without it."""
    found = find(fault, fault.seed)
    assert found is not None, f"seed {fault.seed} finds nothing any more: look for another one"
    assert found.name in fault.names
    run_seed(fault.seed)


def test_the_same_seed_gives_the_same_trace_in_another_process() -> None:
    """Trigger: names are hashed differently in each process, and other seeds ran before."""
    code = "import sys; from tests.sim.sessions.run import run_seed; print(run_seed(5).trace)"
    traces = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=CHECKOUT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(CHECKOUT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for hash_seed in ("1", "2")
    }
    assert traces == {run_seed(5).trace}
