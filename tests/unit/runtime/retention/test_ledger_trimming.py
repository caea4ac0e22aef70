"""Entries of the ledger of rebalances leave it with the history, but for the last of a group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from coordinator.runtime.retention import ledger_trimming
from coordinator.runtime.retention.ledger_trimming import LedgerTrimming
from model.ids import GroupId, LogOffset
from storage.causes_codec import decode_causes_key, encode_causes_key
from storage.log.trim import HistoryStart
from storage.log_store import StoreStalled
from storage.offset_changes_codec import CHANGES_PREFIX, decode_change_key, encode_change_key
from tests.support.memory import MemoryLogStore

NOW_MS = 1_000_000


def make_store(times_ms: dict[str, range]) -> MemoryLogStore:
    store = MemoryLogStore(3)
    for group, at in times_ms.items():
        keys = [encode_causes_key(GroupId(group), at_ms, 2) for at_ms in at]
        store.write([], causes=[(key, b"") for key in keys])
    return store


def make_trimming(
    store: MemoryLogStore, written: Callable[[], int] = lambda: 0, oldest_ms: int | None = None
) -> LedgerTrimming:
    return LedgerTrimming(
        store,
        1_000,
        oldest_ms=lambda partition: oldest_ms,
        exists=lambda group: group != "gone",
        written=written,
    )


def trim(store: MemoryLogStore, oldest_ms: int | None = None) -> dict[str, tuple[int, int]]:
    """Trim; how many entries each group has left, and when the oldest of them began."""

    list(make_trimming(store, oldest_ms=oldest_ms).trim(NOW_MS))
    left = [decode_causes_key(key) for key, _ in store.causes()]
    counts = Counter(group for group, _, _ in left)
    first = {group: at_ms for group, at_ms, _ in reversed(left)}
    return {group: (count, first[group]) for group, count in counts.items()}


def test_old_entries_go_but_the_last_of_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_trimming, "KEPT_MIN", 3)
    monkeypatch.setattr(ledger_trimming, "SLICE", 4)
    old, new = range(NOW_MS - 2_000, NOW_MS - 1_990), range(NOW_MS - 1_005, NOW_MS - 995)
    store = make_store({"old": old, "gone": old, "new": new})
    assert trim(store) == {"old": (3, NOW_MS - 1_993), "new": (5, NOW_MS - 1_000)}


def test_entries_go_with_a_history_that_is_cut_for_its_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ledger_trimming, "KEPT_MIN", 2)
    store = make_store({"a": range(NOW_MS - 10, NOW_MS)})
    assert trim(store, NOW_MS - 4) == {"a": (4, NOW_MS - 4)}


def test_no_group_has_very_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_trimming, "KEPT_MAX", 5)
    store = make_store({"a": range(NOW_MS - 10, NOW_MS), "b": range(NOW_MS - 2, NOW_MS)})
    assert trim(store) == {"a": (5, NOW_MS - 5), "b": (2, NOW_MS - 2)}


def test_a_large_ledger_is_gone_round_in_many_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_trimming, "KEPT_MIN", 0)
    monkeypatch.setattr(ledger_trimming, "SLICE", 5)
    monkeypatch.setattr(ledger_trimming, "LOOKS_MIN", 10)
    store = make_store({"a": range(50), "b": range(50)})
    written = iter([0, 0] + [10] * 6)
    trimming = make_trimming(store, lambda: next(written))
    looked = [sum(trimming.trim(NOW_MS)) for _ in range(6)]
    assert looked == [10, 10, 40, 10, 10, 10]
    assert [decode_causes_key(key)[0] for key, _ in store.causes()] == ["b"] * 50
    assert [sum(trimming.trim(NOW_MS)) for _ in range(2)] == [10, 0]
    assert list(store.causes()) == []


def test_what_does_not_decode_stays_and_keeps_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ledger_trimming, "KEPT_MIN", 0)
    store = make_store({"a": range(3), "b": range(3)})
    store.write([], causes=[(b"\0\0\0\1a!", b"")])
    list(make_trimming(store).trim(NOW_MS))
    assert [key for key, _ in store.causes()] == [b"\0\0\0\1a!"]


def test_a_round_that_the_store_stopped_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_trimming, "KEPT_MIN", 0)
    store = make_store({"a": range(3)})
    trimming, write = make_trimming(store), store.write

    def stall(*arguments: object, **options: object) -> None:
        raise StoreStalled("later")

    monkeypatch.setattr(store, "write", stall)
    with pytest.raises(StoreStalled):
        list(trimming.trim(NOW_MS))
    monkeypatch.setattr(store, "write", write)
    list(trimming.trim(NOW_MS))
    assert list(store.causes()) == []


def test_changes_of_offsets_go_with_the_history_that_undoes_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ledger_trimming, "CHANGES_MAX", 3)
    monkeypatch.setattr(ledger_trimming, "SLICE", 2)
    store = make_store({"a": range(NOW_MS - 1, NOW_MS)})
    keys = {
        group: [encode_change_key(GroupId(group), at) for at in firsts]
        for group, firsts in {"a": (1, 5, 6), "bb": (5, 7), "c": (5, 6, 7, 8, 9)}.items()
    }
    store.write([], causes=[(key, b"") for of_group in keys.values() for key in of_group])
    start = HistoryStart(LogOffset(6), 0)
    monkeypatch.setattr(ledger_trimming, "read_history_start", lambda *_: start)
    store.write([], causes=[(CHANGES_PREFIX + b"bad", b"")])
    assert trim_all(store) == {"a": [6], "bb": [7], "c": [7, 8, 9]}


def trim_all(store: MemoryLogStore) -> dict[str, list[int]]:
    """Trim; where the changes that are left begin, by group."""
    list(make_trimming(store).trim(NOW_MS))
    left: dict[str, list[int]] = {}
    for key, _ in store.causes(CHANGES_PREFIX):
        if key != CHANGES_PREFIX + b"bad":
            group, first = decode_change_key(key)
            left.setdefault(group, []).append(first)
    return left
