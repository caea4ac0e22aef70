"""The metadata hash and the log partition of a group id equal Kafka's."""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import replace
from pathlib import Path

from coordinator.core.state.metadata_hash import (
    TopicHashes,
    compute_group_hash,
    compute_metadata_hash,
    compute_topic_hash,
)
from model.ids import GroupId, TopicId, TopicName, compute_java_hash, compute_log_partition
from model.topics import Topic, compute_image_of

VECTORS = Path(__file__).parents[2] / "golden" / "vectors" / "metadata_hash.jsonl.gz"


def test_kafkas_hashes_are_ours() -> None:
    with gzip.open(VECTORS, "rt", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    assert len(lines) > 100
    for line in lines:
        pairs = []
        for entry in line["topics"]:
            topic = Topic(
                TopicName(entry["name"]),
                TopicId(base64.urlsafe_b64decode(entry["id"] + "==")),
                entry["partitions"],
                tuple(tuple(racks) for racks in entry["racks"]),
            )
            assert compute_topic_hash(topic) == entry["topicHash"], entry["name"]
            pairs.append((entry["name"], entry["topicHash"]))
        assert compute_group_hash(pairs) == line["groupHash"]
        group_id = GroupId(line["groupId"])
        assert compute_log_partition(group_id, 50) == line["offsetsPartitionOf50"]


def test_a_hash_of_min_value_counts_as_zero() -> None:
    text = "polygenelubricants"
    assert compute_java_hash(text) == -0x80000000
    assert compute_log_partition(GroupId(text), 50) == 0


def test_racks_that_are_said_later_make_another_hash() -> None:
    """Also with an unchanged number of partitions, and for partitions without known racks."""
    plain = Topic(TopicName("t"), TopicId(bytes(15) + b"\1"), 3)
    cache: TopicHashes = {}

    def compute(topic: Topic) -> int:
        return compute_metadata_hash([topic.name], compute_image_of((topic,)), cache)

    some = replace(plain, racks=(("a",), ("b",)))
    hashes = [compute(topic) for topic in (plain, some, replace(some, partitions=4), plain)]
    assert len(set(hashes)) == 3
    assert hashes[0] == hashes[-1]
    assert compute(replace(some, racks=(("a",), ("b",), ()))) == hashes[1]
