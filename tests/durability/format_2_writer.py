"""Writes a store of format 2 and dies. Runs on the code of that format alone.

``python tests/durability/format_2_writer.py FOLDER RECORDS`` with ``PYTHONPATH`` set to
``tests/golden/format_2/writer.zip``. The log has offsets that are committed again and again,
tombstones, records of other types, and transactions that are committed, aborted and open.
"""

import os
import random
import sys

from model.ids import LogOffset, LogPartition
from storage.codec.batch_encoding import encode_batch, encode_marker
from storage.log_store import PartitionAppend, pack_latest
from storage.rocks.rocks_opening import open_store

PARTITIONS = 4
BATCH_RECORDS = 500
KEYS = 40_000
TIME_MS = 1_700_000_000_000


class Log:
    """One partition, with what the writer of format 2 has to say of ``latest`` and ``pending``."""

    def __init__(self, store, number, rng):
        self.store, self.number, self.rng = store, LogPartition(number), rng
        self.end = 0
        self.offsets = {}
        """Log offsets of the entries of ``latest``, which decide what a marker commits."""
        self.open = {}

    def make_pairs(self):
        for _ in range(BATCH_RECORDS):
            number = self.rng.randrange(KEYS)
            kind = b"\x00\x01" if number % 20 else b"\x00\x05"
            group = b"group-%d" % (number // 100)
            topic = b"\x00\x05topic" + number.to_bytes(4, "big") if number % 20 else b""
            value = None if self.rng.random() < 0.05 else b"value %d" % self.rng.randrange(1 << 30)
            yield kind + len(group).to_bytes(2, "big") + group + topic, value

    def append(self, batch, records, latest, pending):
        append = PartitionAppend(self.number, LogOffset(self.end), batch, records, latest, pending)
        self.end += records
        return append

    def append_plain(self):
        pairs, latest, pending = list(self.make_pairs()), {}, {}
        for offset, (key, value) in enumerate(pairs, self.end):
            latest[key] = None if value is None else pack_latest(offset, TIME_MS, value)
            self.offsets[key] = offset
            if value is None:
                del self.offsets[key]
                for producer_id, waiting in self.open.items():
                    if waiting.pop(key, None) is not None:
                        pending[producer_id, key] = None
        batch = encode_batch(self.end, pairs, TIME_MS)
        return self.append(batch, len(pairs), latest, pending)

    def append_transactional(self, producer_id):
        pairs = [
            (key, value)
            for key, value in self.make_pairs()
            if value is not None and key[:2] == b"\x00\x01"
        ]
        pending, waiting = {}, self.open.setdefault(producer_id, {})
        for offset, (key, value) in enumerate(pairs, self.end):
            packed = pack_latest(offset, TIME_MS, value)
            pending[producer_id, key] = packed
            waiting[key] = offset, packed
        batch = encode_batch(
            self.end,
            pairs,
            TIME_MS,
            producer_id=producer_id,
            producer_epoch=0,
            is_transactional=True,
        )
        return self.append(batch, len(pairs), {}, pending)

    def append_marker(self, producer_id, committed):
        waiting = self.open.pop(producer_id, {})
        latest = {}
        for key, (offset, packed) in waiting.items():
            if committed and self.offsets.get(key, -1) < offset:
                latest[key] = packed
                self.offsets[key] = offset
        batch = encode_marker(
            self.end,
            TIME_MS,
            producer_id=producer_id,
            producer_epoch=0,
            committed=committed,
            coordinator_epoch=0,
        )
        pending = {(producer_id, key): None for key in waiting}
        return self.append(batch, 1, latest, pending)


def main(folder, records):
    rng = random.Random(7)
    store = open_store(folder, partitions=PARTITIONS, cluster_id="C" * 22)
    logs = [Log(store, number, rng) for number in range(PARTITIONS)]
    while sum(log.end for log in logs) < records:
        log = rng.choice(logs)
        producer_id = rng.randrange(3)
        what = rng.random()
        if what < 0.1:
            append = log.append_transactional(producer_id)
        elif what < 0.2:
            append = log.append_marker(producer_id, rng.random() < 0.7)
        else:
            append = log.append_plain()
        store.write([append], [(b"\x01side", b"%d" % log.end)])
    store.sync()
    store.mark_durable({log.number: LogOffset(log.end) for log in logs})
    store.sync_watermark()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
