"""Every kind of corruption planted in stores: verifying finds it, or it changes nothing."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from storage.verify.stores import verify_partition, verify_side
from storage.verify.violation import Violation
from tests.durability.verify.places import PLACES
from tests.durability.verify.planted import Meaning, golden_stores, read_meaning, trimmed_stores
from tests.durability.verify.store_corruption import (
    FOUND_OR_HARMLESS,
    HISTORY_ALONE,
    NoPlace,
    Plant,
)
from tests.support.storage.plain_store import PlainStore

HARMLESS = {
    # Nothing reads it, and no record or state depends on it.
    "sequence",
    "watermark_behind",
}
"""Kinds that change nothing anywhere; all others are found at one place at least."""


MAY_TOUCH_HISTORY = {"doubled", "marker_turned", "marker_bytes", "swapped_and_renumbered"}
"""Kinds that may leave a log of right bytes: what they change is then superseded by the rest."""


def find(store: PlainStore) -> Violation | None:
    return verify_partition(store, store.number).violation or verify_side(store)


def plant_somewhere(plant: Plant, chance: random.Random) -> tuple[PlainStore, PlainStore]:
    """A store, and what it is after the corruption."""
    while True:
        stores = golden_stores() if chance.random() < 0.5 else trimmed_stores()
        before = chance.choice(stores)
        after = before.copy()
        try:
            plant(after, chance)
        except NoPlace:
            continue
        if after != before:
            return before, after


def describe(store: PlainStore) -> tuple[object, ...]:
    """All that anybody who serves from the store could see of it."""
    meaning = read_meaning(batch for _, batch in store.log)
    return meaning, sorted(store.entries), sorted(store.waiting), sorted(store.sides)


def compute_end(store: PlainStore) -> tuple[object, ...]:
    """The same of the end of the log alone."""
    (_, *folded), *rest = describe(store)  # type: ignore[misc]
    return folded, rest


def test_what_nothing_was_planted_in_passes() -> None:
    for store in (*golden_stores(), *trimmed_stores()):
        assert find(store) is None
    assert any(store.waiting for store in trimmed_stores())
    assert sum(b"" in store.notes for store in trimmed_stores()) > 30


@pytest.mark.parametrize("name", FOUND_OR_HARMLESS)
def test_it_is_found_or_changes_nothing(name: str) -> None:
    outcomes: Counter[str] = Counter()
    for place in range(PLACES):
        chance = random.Random(f"{name} {place}")
        before, after = plant_somewhere(FOUND_OR_HARMLESS[name], chance)
        violation = find(after)
        if violation is not None:
            outcomes["found"] += 1
            assert violation.partition in (before.number, None)
            continue
        outcomes["harmless"] += 1
        if name in MAY_TOUCH_HISTORY:
            assert compute_end(after) == compute_end(before), f"place {place} is not found"
        else:
            assert describe(after) == describe(before), f"place {place} is not found"
    assert bool(outcomes["found"]) == (name not in HARMLESS), outcomes


@pytest.mark.parametrize("name", HISTORY_ALONE)
def test_another_history_comes_to_the_same_state(name: str) -> None:
    for place in range(PLACES):
        chance = random.Random(f"{name} {place}")
        before, after = plant_somewhere(HISTORY_ALONE[name], chance)
        assert find(after) is None
        old, new = (read_meaning(batch for _, batch in store.log) for store in (before, after))
        assert isinstance(old, Meaning)
        assert (old.latest, old.pending) == (new.latest, new.pending)
        assert len(old.records) == len(new.records)
        assert sum(a != b for a, b in zip(old.records, new.records, strict=True)) == 1
