"""Folding is the plainest model of its rule, and the same for every compaction of a log."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from storage.log.fold import PartitionFold
from tests.support.storage.drawn_logs import (
    LOGS,
    NO_PRODUCER,
    MarkerRow,
    Row,
    Write,
    encode,
    lay_out,
)

law = settings(max_examples=400)


def fold(rows: list[Row | MarkerRow], per_batch: int = 3) -> PartitionFold:
    folded = PartitionFold()
    for batch in encode(rows, per_batch):
        folded.apply(batch)
    return folded


def check_same(one: PartitionFold, other: PartitionFold) -> None:
    assert (one.latest, one.pending) == (other.latest, other.pending)


# ------------------------------------------------------------------------------- the naive model


@law
@given(LOGS, st.integers(0, 2), st.integers(1, 4))
def test_the_visible_record_is_the_committed_one_that_was_written_last(
    writes: list[Write], gap: int, per_batch: int
) -> None:
    rows = lay_out(writes, gap)
    folded = fold(rows, per_batch)
    visible: dict[bytes, int] = {}
    pending: dict[int, dict[bytes, int]] = {}
    for row in rows:
        if not isinstance(row, Row):
            continue
        is_plain = row.producer_id == NO_PRODUCER
        if row.value is None:
            visible.pop(row.name, None)
            for entries in pending.values():
                entries.pop(row.name, None)
        elif is_plain or row.outcome:
            visible[row.name] = row.offset
        elif row.outcome is None:
            pending.setdefault(row.producer_id, {})[row.name] = row.offset
    assert {key: entry.offset for key, entry in folded.latest.items()} == visible
    assert {
        producer_id: {key: entry.offset for key, entry in entries.items()}
        for producer_id, entries in folded.pending.items()
    } == {producer_id: entries for producer_id, entries in pending.items() if entries}
    for key, entry in folded.latest.items():
        assert (entry.key, entry.timestamp) == (key, entry.offset)


# -------------------------------------------------------------------------------- compactions


def compact(
    rows: list[Row | MarkerRow], window: range, drops_tombstones: bool
) -> list[Row | MarkerRow]:
    """What a cleaner leaves of the log when it has cleaned the offsets of the window.

    Within it the last record of a key stays; what was aborted goes. It never reaches a
    transaction that is open. Tombstones and markers without records before them go only from a
    window that begins with the log.
    """
    unstable = [
        row.offset
        for row in rows
        if isinstance(row, Row) and row.producer_id != NO_PRODUCER and row.outcome is None
    ]
    inside = range(window.start, min([window.stop, *unstable]))
    is_first = inside.start == 0
    last: dict[bytes, int] = {}
    for row in rows:
        if isinstance(row, Row) and row.offset in inside and row.outcome is not False:
            last[row.name] = row.offset
    kept: list[Row | MarkerRow] = []
    for row in rows:
        if row.offset not in inside:
            kept.append(row)
        elif isinstance(row, MarkerRow):
            has_data = any(
                isinstance(before, Row) and before.producer_id == row.producer_id for before in kept
            )
            if has_data or not (is_first and drops_tombstones):
                kept.append(row)
        elif last.get(row.name) == row.offset and (
            row.value is not None or not (is_first and drops_tombstones)
        ):
            kept.append(row)
    return kept


@law
@given(LOGS, st.integers(0, 40), st.integers(0, 40), st.booleans(), st.integers(1, 3))
def test_every_compaction_of_a_log_comes_to_the_same(
    writes: list[Write], start: int, length: int, drops_tombstones: bool, per_batch: int
) -> None:
    rows = lay_out(writes, 0)
    cleaned = compact(rows, range(start, start + length), drops_tombstones)
    check_same(fold(rows), fold(cleaned, per_batch))
    again = compact(cleaned, range(start + length), drops_tombstones)
    check_same(fold(rows), fold(again, per_batch))


@law
@given(LOGS, st.integers(0, 40))
def test_a_prefix_may_be_replaced_by_what_it_comes_to(writes: list[Write], cut: int) -> None:
    """Finished transactions as plain records, open ones as they are, at their own offsets."""
    rows = lay_out(writes, 0)
    prefix = fold([row for row in rows if row.offset < cut])
    resolved: list[Row | MarkerRow] = [
        Row(entry.offset, entry.key, entry.value, NO_PRODUCER) for entry in prefix.latest.values()
    ]
    resolved += [
        Row(entry.offset, entry.key, entry.value, producer_id)
        for producer_id, entries in prefix.pending.items()
        for entry in entries.values()
    ]
    resolved.sort(key=lambda row: row.offset)
    check_same(fold(rows), fold(resolved + [row for row in rows if row.offset >= cut]))
