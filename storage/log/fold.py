"""Folding a partition's log into ``latest`` and ``pending``: the reference definition.

The rules are those of Kafka's ``OffsetMetadataManager.replay`` and ``replayEndTransactionMarker``:

- A record stays in ``latest`` until the next record with its key; a tombstone deletes it. A
  legacy offset key (type 0) and the type-1 key of the same partition are one key.
- An offset commit in a transactional batch waits in ``pending`` for its producer's marker. An
  abort marker drops it. A commit marker moves it to ``latest``, with the offset and timestamp of
  its own record, unless ``latest`` has a commit with a higher log offset: the visible commit is
  the committed write with the highest log offset.
- A tombstone of an offset also drops the pending commits of that key, of every producer. A
  compacted log keeps only the tombstone, so replaying it must give the same result.
- Only offset commits wait: every other record of a transactional batch applies at once. A
  non-transactional batch with a producer id is an idempotent write and applies at once.
- Records of unknown types are kept as they are. Records without a key are in the log only.
- A marker ends the producer's transaction whatever its epoch, and has no effect if none is open.
  Other control records, and control batches emptied by a cleaner, have no effect.
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
    """The state of one partition's log, updated batch by batch.

    ``latest`` maps record keys (``compute_latest_key``) to entries, ``pending`` maps producer ids
    to such a map of their open transaction. ``next_offset`` is the log end offset.
    """

    __slots__ = ("_waiting", "latest", "next_offset", "pending")

    def __init__(self) -> None:
        self.latest: dict[bytes, LatestEntry] = {}
        self.pending: dict[int, dict[bytes, LatestEntry]] = {}
        self.next_offset = LogOffset(0)
        self._waiting: dict[bytes, set[int]] = {}
        """For each key in ``pending``, the producers that have it."""

    def apply(self, batch: bytes) -> None:
        """Apply one RecordBatch v2, compressed or not.

        Raises ``CodecError``, without changing any state, if the batch is damaged or its base
        offset is below ``next_offset``.
        """
        self.apply_batch(decode_batch(batch, decompress=decompress))

    def apply_batch(self, batch: Batch) -> None:
        """``apply`` for a decoded batch."""
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
        """Apply a transaction marker of the producer."""
        for key, entry in self.pending.pop(producer_id, {}).items():
            producers = self._waiting[key]
            producers.discard(producer_id)
            if not producers:
                del self._waiting[key]
            if committed:
                current = self.latest.get(key)
                if current is None or current.offset < entry.offset:
                    self.latest[key] = entry
