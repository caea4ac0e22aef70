"""The simulation finds what is broken on purpose, soon, and by the right checker."""

from __future__ import annotations

import pytest

from tests.sim.broken import BROKEN, Patch, broken
from tests.sim.campaign import run_seeds

SEEDS = 12


@pytest.mark.parametrize(("patch", "names"), BROKEN, ids=[patch.__name__ for patch, _ in BROKEN])
def test_it_is_found(patch: Patch, names: frozenset[str]) -> None:
    with broken(patch):
        totals = run_seeds(range(SEEDS))
    assert totals.failures, f"{SEEDS} seeds passed"
    failure = totals.failures[0]
    assert failure.name in names, f"{failure.what}\n{failure.where}"
    assert run_seeds([failure.seed]).has_passed, "it is not the fault of the seed"
