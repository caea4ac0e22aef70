"""The idempotent producers of one partition: detects duplicate and out-of-order batches; pure.

The rules are those of Kafka's ``ProducerStateManager`` and ``ProducerAppendInfo``, without
transactions.
"""

from __future__ import annotations

import struct
import zlib
from collections import OrderedDict, deque
from typing import NamedTuple

from gateway.topics.topic_catalogue import TopicDataError
from model.errors import ErrorCode
from storage.codec.batches import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, BatchHeader

BATCHES_KEPT = 5
"""A producer may have this many batches in flight, and may retry any of them."""

_MAGIC = b"MPS1"
_FRAME = struct.Struct(">4sII")
_PRODUCER = struct.Struct(">qhB")
_BATCH = struct.Struct(">iiqq")
_SEQUENCES = 1 << 31


class AppendedBatch(NamedTuple):
    """A producer's batch in the log; both sequence numbers are inclusive."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    max_timestamp: int


class _Producer:
    __slots__ = ("batches", "epoch")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches: deque[AppendedBatch] = deque(maxlen=BATCHES_KEPT)


class ProducerStates:
    """The last batches of each of the ``limit`` most recent producers.

    An evicted producer may continue with any sequence number, as one that Kafka has expired.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._producers: OrderedDict[int, _Producer] = OrderedDict()

    def __len__(self) -> int:
        return len(self._producers)

    def find_duplicate(self, header: BatchHeader) -> AppendedBatch | None:
        """The batch in the log that ``header`` duplicates, if any."""
        producer = self._producers.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch:
            return None
        wanted = (header.base_sequence, compute_last_sequence(header))
        for batch in producer.batches:
            if batch[:2] == wanted:
                return batch
        return None

    def check_next(self, header: BatchHeader) -> None:
        """Raise ``TopicDataError`` if the batch has a stale epoch or an unexpected sequence."""
        producer = self._producers.get(header.producer_id)
        if producer is None or header.producer_id <= NO_PRODUCER_ID:
            return
        if header.producer_epoch < producer.epoch:
            raise TopicDataError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Epoch {header.producer_epoch} of producer {header.producer_id} is older than "
                f"the current epoch {producer.epoch}.",
            )
        if header.producer_epoch > producer.epoch:
            expected = 0 if producer.epoch != NO_PRODUCER_EPOCH else header.base_sequence
        elif producer.epoch == NO_PRODUCER_EPOCH or not producer.batches:
            return
        else:
            expected = (producer.batches[-1].last_sequence + 1) % _SEQUENCES
        if header.base_sequence != expected:
            raise TopicDataError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Out of order sequence number for producer {header.producer_id}: expected "
                f"{expected}, got {header.base_sequence}.",
            )

    def record(self, header: BatchHeader, base_offset: int) -> None:
        """Note that a batch is in the log at ``base_offset``."""
        if header.producer_id <= NO_PRODUCER_ID:
            return
        producer = self._producers.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch:
            producer = self._producers[header.producer_id] = _Producer(header.producer_epoch)
        self._producers.move_to_end(header.producer_id)
        producer.batches.append(
            AppendedBatch(
                header.base_sequence,
                compute_last_sequence(header),
                base_offset,
                header.max_timestamp,
            )
        )
        if len(self._producers) > self._limit:
            self._producers.popitem(last=False)

    def encode(self) -> bytes:
        """Encode the state with a CRC, least recent producer first."""
        parts = []
        for producer_id, producer in self._producers.items():
            parts.append(_PRODUCER.pack(producer_id, producer.epoch, len(producer.batches)))
            parts.extend(_BATCH.pack(*batch) for batch in producer.batches)
        payload = b"".join(parts)
        return _FRAME.pack(_MAGIC, len(payload), zlib.crc32(payload)) + payload


def decode_producers(data: bytes, limit: int) -> ProducerStates | None:
    """Decode the result of ``encode``; ``None`` if it is truncated or damaged."""
    if len(data) < _FRAME.size:
        return None
    magic, length, crc = _FRAME.unpack_from(data)
    payload = data[_FRAME.size :]
    if magic != _MAGIC or length != len(payload) or zlib.crc32(payload) != crc:
        return None
    states = ProducerStates(limit)
    pos = 0
    while pos < len(payload):
        producer_id, epoch, count = _PRODUCER.unpack_from(payload, pos)
        pos += _PRODUCER.size
        producer = states._producers[producer_id] = _Producer(epoch)
        for _ in range(count):
            producer.batches.append(AppendedBatch(*_BATCH.unpack_from(payload, pos)))
            pos += _BATCH.size
    while len(states._producers) > limit:
        states._producers.popitem(last=False)
    return states


def compute_last_sequence(header: BatchHeader) -> int:
    """The sequence number of the batch's last record; it wraps from 2^31 - 1 to 0."""
    return (header.base_sequence + header.count - 1) % _SEQUENCES
