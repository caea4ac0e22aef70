"""The metadata hash of a group (KIP-1101), which changes when a subscribed topic does.

XXH3-64 over the same little-endian stream as Kafka's ``Utils.computeTopicHash``, so that a hash in
a record that Kafka wrote equals the one computed here.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import TypeAlias

import xxhash

from model.ids import TopicId, TopicName
from model.topics import Topic, TopicImage

TopicHashes: TypeAlias = dict[TopicId, tuple[Topic, int]]
"""The hashes of topics, each with the ``Topic`` that it was computed from."""

GONE_KEPT = 16
"""The cache keeps up to twice as many hashes as there are topics, and this many more."""

_MAGIC = 0
_INT = struct.Struct("<i")
_PAIR_OF_LONGS = struct.Struct("<qq")


def _to_signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _encode_text(text: str) -> bytes:
    """UTF-16 code units and then their number, as in hash4j's ``putString``."""
    data = text.encode("utf-16-le", "surrogatepass")
    return data + _INT.pack(len(data) // 2)


def _encode_rack(rack: str) -> bytes:
    data = _encode_text(rack)
    return data[-4:] + data


def compute_topic_hash(topic: Topic) -> int:
    """The signed 64-bit hash of a topic: id, name, number of partitions, racks."""
    most, least = struct.unpack(">qq", topic.topic_id)
    parts = [
        bytes((_MAGIC,)),
        _PAIR_OF_LONGS.pack(most, least),
        _encode_text(topic.name),
        _INT.pack(topic.partitions),
    ]
    if topic.racks:
        unknown = [()] * (topic.partitions - len(topic.racks))
        for partition, racks in enumerate([*topic.racks, *unknown]):
            parts.append(_INT.pack(partition))
            parts.extend(_encode_rack(rack) for rack in sorted(racks))
    else:
        parts.extend(map(_INT.pack, range(topic.partitions)))
    return _to_signed(xxhash.xxh3_64_intdigest(b"".join(parts)))


def compute_group_hash(topic_hashes: Iterable[tuple[str, int]]) -> int:
    """The hash of (name, topic hash) pairs in name order; 0 for none."""
    ordered = sorted(topic_hashes, key=lambda pair: pair[0].encode("utf-16-be", "surrogatepass"))
    if not ordered:
        return 0
    data = struct.pack(f"<{len(ordered)}q", *(value for _, value in ordered))
    return _to_signed(xxhash.xxh3_64_intdigest(data))


def compute_metadata_hash(names: Iterable[TopicName], image: TopicImage, cache: TopicHashes) -> int:
    """The hash of the subscribed topics that exist; the caller owns the ``cache``."""
    pairs = []
    for name in names:
        topic = image.by_name.get(name)
        if topic is None:
            continue
        known = cache.get(topic.topic_id)
        if known is None or known[0] is not topic:
            known = cache[topic.topic_id] = (topic, compute_topic_hash(topic))
        pairs.append((name, known[1]))
    drop_gone_hashes(image, cache)
    return compute_group_hash(pairs)


def drop_gone_hashes(image: TopicImage, cache: TopicHashes) -> None:
    """Drop the hashes of deleted topics once they outnumber the existing topics."""
    if len(cache) > 2 * len(image.by_id) + GONE_KEPT:
        for topic_id in [each for each in cache if each not in image.by_id]:
            del cache[topic_id]
