"""Logs of one partition for laws: drawn as writes, laid out at offsets, encoded, and folded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from hypothesis import strategies as st

from storage.codec.batch_encoding import encode_marker, reencode_batch
from storage.codec.batches import Batch, BatchRecord
from storage.log.fold import PartitionFold
from storage.log_store import compute_latest_key, pack_latest
from tests.support.storage.appends import offset_key

TRANSACTIONAL, PLAIN = 0x10, 0
NO_PRODUCER = -1
OFFSETS = tuple(offset_key("g", partition) for partition in range(3))
LEGACY = tuple(b"\x00\x00" + key[2:] for key in OFFSETS[:2])
GROUPS = (b"\x00\x02\x00\x01g", b"\x00\x03\x00\x01g", b"\x7f\xffodd")
PRODUCERS = (1, 2, 70_000)


class Write(NamedTuple):
    """One batch: records of a producer, or of none, or with ``ends`` its marker."""

    producer_id: int
    records: tuple[tuple[bytes, bytes | None], ...]
    ends: bool | None


VALUES = st.integers(0, 255).map(lambda number: bytes((number,)))
PLAIN_WRITES = st.builds(
    Write,
    st.just(NO_PRODUCER),
    st.lists(
        st.tuples(st.sampled_from(OFFSETS + LEGACY + GROUPS), st.none() | VALUES),
        min_size=1,
        max_size=4,
    ).map(tuple),
    st.none(),
)
TRANSACTIONAL_WRITES = st.builds(
    Write,
    st.sampled_from(PRODUCERS),
    st.lists(st.tuples(st.sampled_from(OFFSETS + LEGACY), VALUES), min_size=1, max_size=3).map(
        tuple
    ),
    st.none(),
)
MARKERS = st.builds(Write, st.sampled_from(PRODUCERS), st.just(()), st.booleans())
LOGS = st.lists(PLAIN_WRITES | TRANSACTIONAL_WRITES | TRANSACTIONAL_WRITES | MARKERS, max_size=16)


@dataclass
class Row:
    """A record at its offset, with what becomes of its transaction: ``None`` while it is open."""

    offset: int
    key: bytes
    value: bytes | None
    producer_id: int
    outcome: bool | None = None

    @property
    def name(self) -> bytes:
        return compute_latest_key(self.key)


@dataclass
class MarkerRow:
    offset: int
    producer_id: int
    committed: bool


def lay_out(writes: list[Write], gap: int) -> list[Row | MarkerRow]:
    """Offsets for all of it, and the outcome of every transaction."""
    rows: list[Row | MarkerRow] = []
    offset = 0
    for write in writes:
        offset += gap
        if write.ends is None:
            for key, value in write.records:
                rows.append(Row(offset, key, value, write.producer_id))
                offset += 1
            continue
        for row in rows:
            if isinstance(row, Row) and row.producer_id == write.producer_id:
                row.outcome = write.ends if row.outcome is None else row.outcome
        rows.append(MarkerRow(offset, write.producer_id, write.ends))
        offset += 1
    return rows


def encode(rows: list[Row | MarkerRow], per_batch: int) -> Iterator[bytes]:
    """Batches of one producer each; records may lie apart, as in a log that was compacted."""
    held: list[Row] = []
    for row in rows:
        if held and (
            isinstance(row, MarkerRow)
            or row.producer_id != held[0].producer_id
            or len(held) == per_batch
        ):
            yield encode_rows(held)
            held = []
        if isinstance(row, Row):
            held.append(row)
        else:
            yield encode_marker(
                row.offset,
                row.offset,
                producer_id=row.producer_id,
                producer_epoch=0,
                committed=row.committed,
                coordinator_epoch=0,
            )
    if held:
        yield encode_rows(held)


def encode_rows(rows: list[Row]) -> bytes:
    first, last = rows[0].offset, rows[-1].offset
    producer_id = rows[0].producer_id
    attributes = PLAIN if producer_id == NO_PRODUCER else TRANSACTIONAL
    epoch = -1 if producer_id == NO_PRODUCER else 0
    records = tuple(BatchRecord(row.offset, row.offset, row.key, row.value) for row in rows)
    return reencode_batch(
        Batch(
            *(first, last, 0, 0, 0, attributes, first, last, producer_id, epoch, 0, len(rows)),
            records=records,
        )
    )


def fold_batches(
    log: Iterable[bytes],
) -> tuple[dict[bytes, bytes], dict[tuple[int, bytes], bytes]]:
    folded = PartitionFold()
    for batch in log:
        folded.apply(batch)
    return (
        {key: pack_latest(*entry[1:]) for key, entry in folded.latest.items()},
        {
            (producer_id, key): pack_latest(*entry[1:])
            for producer_id, entries in folded.pending.items()
            for key, entry in entries.items()
        },
    )
