"""Faults that were mended are found by the seeds that are kept for them, and by nothing else."""

from __future__ import annotations

import pytest

from tests.sim.broken import broken
from tests.sim.campaign import run_seeds
from tests.sim.faults_put_back import PUT_BACK
from tests.sim.violations import focus


@pytest.mark.parametrize("name", [name for name, row in PUT_BACK.items() if row.seed is not None])
def test_its_seed_finds_it(name: str) -> None:
    """Trigger: habits of members have changed; ``python -m tests.sim --broken`` finds another."""
    row = PUT_BACK[name]
    assert row.seed is not None
    with broken(row.patch), focus(*row.names):
        totals = run_seeds([row.seed], kind=row.kind)
    assert totals.failures, f"seed {row.seed} passed"
    failure = totals.failures[0]
    assert failure.name in row.names, f"{failure.what}\n{failure.where}"
    assert run_seeds([row.seed], kind=row.kind).has_passed, "it is not the fault of the seed"
