"""Idempotent producers of one partition: which batch is new, which a repetition; pure.

The rules of Kafka's ``ProducerStateManager`` and ``ProducerAppendInfo``, without transactions.
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
"""As many as a producer may have in flight, and so repeat."""

_MAGIC = b"MPS1"
_FRAME = struct.Struct(">4sII")
_PRODUCER = struct.Struct(">qhB")
_BATCH = struct.Struct(">iiqq")
_SEQUENCES = 1 << 31


class AppendedBatch(NamedTuple):
    """A batch of a producer that is in the log; sequence numbers are both inclusive."""

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
    """The last batches of each producer, at most ``limit`` producers: the least recent go.

    A producer that is forgotten may go on with any sequence number, as one whose records Kafka
    has expired.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._producers: OrderedDict[int, _Producer] = OrderedDict()

    def __len__(self) -> int:
        return len(self._producers)

    def find_duplicate(self, header: BatchHeader) -> AppendedBatch | None:
        """The batch of the log that ``header`` repeats."""
        producer = self._producers.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch:
            return None
        wanted = (header.base_sequence, compute_last_sequence(header))
        for batch in producer.batches:
            if batch[:2] == wanted:
                return batch
        return None

    def check_next(self, header: BatchHeader) -> None:
        """Raises ``TopicDataError`` unless the batch continues what its producer sent."""
        producer = self._producers.get(header.producer_id)
        if producer is None or header.producer_id <= NO_PRODUCER_ID:
            return
        if header.producer_epoch < producer.epoch:
            raise TopicDataError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {header.producer_id} is at epoch {producer.epoch} here, "
                f"not {header.producer_epoch}",
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
                f"producer {header.producer_id} continues with sequence number {expected}, "
                f"not {header.base_sequence}",
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
        """All of it, least recent producer first, with a CRC."""
        parts = []
        for producer_id, producer in self._producers.items():
            parts.append(_PRODUCER.pack(producer_id, producer.epoch, len(producer.batches)))
            parts.extend(_BATCH.pack(*batch) for batch in producer.batches)
        payload = b"".join(parts)
        return _FRAME.pack(_MAGIC, len(payload), zlib.crc32(payload)) + payload


def decode_producers(data: bytes, limit: int) -> ProducerStates | None:
    """What ``encode`` made, or ``None`` where the bytes are not whole."""
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
    """The sequence number of the batch's last record; after 2^31 - 1 comes 0."""
    return (header.base_sequence + header.count - 1) % _SEQUENCES
