"""Conversions of large groups, which go on while all else happens, on groups of a few members."""

from __future__ import annotations

import pytest

from coordinator.core.state import conversion
from coordinator.runtime.commands import sliced_conversions
from coordinator.runtime.commands.sliced_conversions import Conversions
from tests.sim.broken.designated_classic import mostly_classic
from tests.sim.kinds import KINDS

SEEDS_MIN = 12
SEEDS_MAX = 100
"""A conversion is rarely spoiled by what happens meanwhile: in one seed of some ten."""


@pytest.mark.timeout(600)
def test_groups_that_are_converted_in_slices_keep_all_invariants(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun = made = 0
    begin, make = Conversions.begin, sliced_conversions._make

    def count_begun(self: Conversions, *arguments: object) -> None:
        nonlocal begun
        begun += 1
        begin(self, *arguments)  # type: ignore[arg-type]

    def count_made(*arguments: object) -> object:
        nonlocal made
        made += 1
        return make(*arguments)  # type: ignore[arg-type]

    mostly_classic(monkeypatch)
    monkeypatch.setattr(conversion, "AT_ONCE_MAX", 0)
    monkeypatch.setattr(conversion, "SLICE", 1)
    monkeypatch.setattr(Conversions, "begin", count_begun)
    monkeypatch.setattr(sliced_conversions, "_make", count_made)
    for seed in range(SEEDS_MAX):
        KINDS["core"].run_seed(seed)
        if seed >= SEEDS_MIN and made > begun:
            break
    assert begun > SEEDS_MIN
    assert made > begun, "none was spoiled"
