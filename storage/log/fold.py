"""Folding a partition's log: the one rule for what ``latest`` and ``pending`` hold after it.

Facts of Kafka's ``OffsetMetadataManager.replay`` and ``replayEndTransactionMarker``:

- A record stands in ``latest`` until one with its key comes; a tombstone deletes. A legacy offset
  key (type 0) and its type-1 twin are one key.
- A commit in a transactional batch waits in ``pending`` for its producer's marker. An abort drops
  it. A commit moves it to ``latest``, at the offset and time of its own record, unless an offset
  stands there that was written later: what is visible is the committed write with the highest
  log position.
- A tombstone of an offset also drops what waits for that key, of every producer. So nothing comes
  back that a compaction of the log, which keeps only the tombstone, would not bring back.
- Only commits wait: every other record of a transactional batch counts at once. A batch with a
  producer id that is not transactional is an idempotent write like any other.
- Types that are not known are kept as they are; records without a key are in the log alone.
- Markers end the producer's transaction whatever epoch they carry, and do nothing where none is
  open. Control records of other types, and control batches that a cleaner emptied, do nothing.
"""

from __future__ import annotations

from model.ids import LogOffset
from storage.codec.batches import NO_PRODUCER_ID, Batch, decode_batch, decode_marker
from storage.codec.errors import CodecError
from storage.log.compression import decompress
from storage.log_store import LatestEntry

_LEGACY_OFFSET_TYPE = b"\x00\x00"
_OFFSET_TYPE = b"\x00\x01"


class PartitionFold:
    """The state of one partition's log, batch by batch.

    ``latest`` maps record keys, as ``compute_latest_key`` gives them, to their entries, and
    ``pending`` producer ids to the same of their open transactions. ``next_offset`` is where the
    log goes on.
    """

    __slots__ = ("_waiting", "latest", "next_offset", "pending")

    def __init__(self) -> None:
        self.latest: dict[bytes, LatestEntry] = {}
        self.pending: dict[int, dict[bytes, LatestEntry]] = {}
        self.next_offset = LogOffset(0)
        self._waiting: dict[bytes, set[int]] = {}
        """The producers that have the key in ``pending``."""

    def apply(self, batch: bytes) -> None:
        """One RecordBatch v2, in any compression.

        Raises ``CodecError`` where it is damaged or does not come after what was folded before;
        nothing is changed then.
        """
        self.apply_batch(decode_batch(batch, decompress=decompress))

    def apply_batch(self, batch: Batch) -> None:
        """As ``apply``, for a batch that was decoded already."""
        if batch.base_offset < self.next_offset:
            raise CodecError(
                f"the batch at offset {batch.base_offset} does not come after offset "
                f"{self.next_offset - 1}"
            )
        if batch.is_control:
            self._apply_control(batch)
        else:
            self._apply_records(batch)
        self.next_offset = LogOffset(batch.last_offset + 1)

    def _apply_control(self, batch: Batch) -> None:
        markers = [decode_marker(record) for record in batch.records]
        for marker in markers:
            if marker is not None:
                self.end_transaction(batch.producer_id, committed=marker.committed)

    def _apply_records(self, batch: Batch) -> None:
        latest, waiting = self.latest, self._waiting
        producer_id = batch.producer_id if batch.is_transactional else NO_PRODUCER_ID
        for offset, timestamp, key, value, _ in batch.records:
            if key is None:
                continue
            kind = key[:2]
            if kind == _LEGACY_OFFSET_TYPE:
                key = _OFFSET_TYPE + key[2:]
                kind = _OFFSET_TYPE
            if value is None:
                latest.pop(key, None)
                if waiting and key in waiting:
                    self._drop_waiting(key)
            elif producer_id >= 0 and kind == _OFFSET_TYPE:
                entry = LatestEntry(key, LogOffset(offset), timestamp, value)
                self.pending.setdefault(producer_id, {})[key] = entry
                waiting.setdefault(key, set()).add(producer_id)
            else:
                latest[key] = LatestEntry(key, LogOffset(offset), timestamp, value)

    def _drop_waiting(self, key: bytes) -> None:
        for producer_id in self._waiting.pop(key):
            entries = self.pending[producer_id]
            del entries[key]
            if not entries:
                del self.pending[producer_id]

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """What a marker of the producer does."""
        for key, entry in self.pending.pop(producer_id, {}).items():
            producers = self._waiting[key]
            producers.discard(producer_id)
            if not producers:
                del self._waiting[key]
            if committed:
                standing = self.latest.get(key)
                if standing is None or standing.offset < entry.offset:
                    self.latest[key] = entry
