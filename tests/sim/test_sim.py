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
from tests.sim.kinds import KINDS

SHARDS = 2
CPU_SECONDS = float(os.environ.get("SIM_CPU_S") or 20)
"""For all kinds and shards together."""

DETERMINISTIC_SEEDS = (3, 11)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize("kind", list(KINDS))
def test_seeds_pass(kind: str, shard: int, record_property: Callable[[str, object], None]) -> None:
    """As many seeds as the CPU time allows; with xdist the shards run beside each other."""
    share = KINDS[kind].share / sum(each.share for each in KINDS.values())
    cpu_seconds = CPU_SECONDS * share / SHARDS
    totals = run_seeds(itertools.count(shard, SHARDS), cpu_seconds, kind=kind)
    record_property(
        "note", f"simulation ({kind}): {totals.seeds} seeds in {totals.cpu_seconds:.0f} s of CPU"
    )
    print(format_totals(totals))
    assert not totals.failures, format_totals(totals)
    assert not totals.unreached(), format_totals(totals)
    assert totals.seeds > 0


@pytest.mark.parametrize("seed", DETERMINISTIC_SEEDS)
@pytest.mark.parametrize("kind", list(KINDS))
def test_the_same_seed_gives_the_same_trace(kind: str, seed: int) -> None:
    run_seed = KINDS[kind].run_seed
    first, second = run_seed(seed), run_seed(seed)
    assert first == second
    assert first.trace != run_seed(seed + 1).trace


@pytest.mark.parametrize("kind", list(KINDS))
def test_the_same_seed_gives_the_same_trace_in_another_process(kind: str) -> None:
    """Trigger: names are hashed differently in each process, and other seeds ran before."""
    code = f"from tests.sim.kinds import KINDS; print(KINDS[{kind!r}].run_seed(5).trace)"
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
    assert {trace.strip() for trace in traces} == {KINDS[kind].run_seed(5).trace}


def test_a_campaign_ends_by_itself_and_says_what_failed() -> None:
    """Trigger: processes that are spawned import everything anew, the command itself excepted."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.sim", "--seeds", "1", "--jobs", "2"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 seeds passed, 0 failed" in done.stdout
    for kind in KINDS:
        assert f"{kind}: 1 seeds passed" in done.stdout
