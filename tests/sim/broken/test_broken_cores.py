"""The simulation finds what is broken on purpose, soon, and by the right checker."""

from __future__ import annotations

import pytest

from tests.sim.broken.broken import BROKEN, Patch, broken, two_owners
from tests.sim.broken.designated import DESIGNATED
from tests.sim.broken.designated_classic import CLASSIC, mostly_classic
from tests.sim.campaign import run_seeds
from tests.sim.checkers.violations import focus

SEEDS = 40
DESIGNATED_SEEDS = 120
"""Some faults meet what is broken in few seeds only."""


@pytest.mark.parametrize(("patch", "names"), BROKEN, ids=[patch.__name__ for patch, _ in BROKEN])
def test_it_is_found(patch: Patch, names: frozenset[str]) -> None:
    with broken(patch):
        totals = run_seeds(range(SEEDS))
    assert totals.failures, f"{SEEDS} seeds passed"
    failure = totals.failures[0]
    assert failure.name in names, f"{failure.what}\n{failure.where}"
    assert run_seeds([failure.seed]).has_passed, "it is not the fault of the seed"


def test_the_server_itself_finds_two_owners(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the records are replayed, and so before any checker sees them."""
    two_owners(monkeypatch)
    totals = run_seeds(range(SEEDS))
    assert totals.failures, f"{SEEDS} seeds passed"
    assert "is stopped: invariant one_owner: " in totals.failures[0].what


@pytest.mark.parametrize(
    ("name", "patch"), DESIGNATED, ids=[f"{name}-{patch.__name__}" for name, patch in DESIGNATED]
)
def test_the_checker_of_it_finds_it(name: str, patch: Patch) -> None:
    """By itself: what others would have found before goes on until this one speaks."""
    _check_found(name, patch)


@pytest.mark.parametrize(
    ("name", "patch"), CLASSIC, ids=[f"{name}-{patch.__name__}" for name, patch in CLASSIC]
)
def test_the_checker_of_classic_members_finds_it(name: str, patch: Patch) -> None:
    """The same where most members are of the classic protocol."""
    with broken(mostly_classic):
        _check_found(name, patch)


def _check_found(name: str, patch: Patch) -> None:
    others = []
    for seed in range(DESIGNATED_SEEDS):
        with broken(patch), focus(name):
            totals = run_seeds([seed])
        if totals.failures and totals.failures[0].name == name:
            return
        others += [f"{failure.seed}: {failure.what[:80]}" for failure in totals.failures]
    pytest.fail(f"{name} did not find it in {DESIGNATED_SEEDS} seeds, but: {others}")
