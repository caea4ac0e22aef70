"""The sizes of all segments, and the memory of the ledger itself."""

from __future__ import annotations

from gateway.topics.log.byte_ledger import SegmentLedger
from gateway.topics.topic_catalogue import PartitionKey
from model.ids import TopicId

TOPIC = TopicId(b"t" * 16)


def test_segments_of_a_partition_share_its_key() -> None:
    ledger = SegmentLedger()
    for base_offset in range(100):
        ledger.add((PartitionKey(TOPIC, 0), base_offset), 10)
    first = ledger.oldest(lambda key: False)
    last = ledger.oldest(lambda key: key[1] < 99)
    assert first is not None
    assert last is not None
    assert (first[1], last[1]) == (0, 99)
    assert first[0] is last[0]


def test_a_partition_without_segments_is_forgotten() -> None:
    ledger = SegmentLedger()
    one, other = PartitionKey(TOPIC, 0), PartitionKey(TOPIC, 1)
    for key in (one, other):
        for base_offset in (0, 7):
            ledger.add((key, base_offset), 10)
    ledger.add((one, 7), 5)
    assert ledger.total == 45
    ledger.remove((one, 0))
    ledger.remove((one, 0))
    assert ledger.total == 35
    ledger.remove((one, 7))
    assert ledger.partitions() == [other]
    ledger.remove_partition(other)
    ledger.remove_partition(other)
    assert (ledger.total, ledger.partitions()) == (0, [])
