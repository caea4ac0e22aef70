"""Topics as the cluster's Metadata has them, and what has changed in them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from gateway.codec.client_frames import ClientRequest
from model.errors import ErrorCode
from model.ids import ZERO_TOPIC_ID, TopicId, TopicName
from model.topics import Topic, TopicImage

METADATA: Final = 3
TOPICS_PER_REQUEST: Final = 500
_NAMESPACE: Final = b"muster topic without an id\0"


class TopicChanges(NamedTuple):
    """What differs from an image: new, grown or recreated topics, and the names of those gone."""

    changed: tuple[Topic, ...]
    gone: tuple[TopicName, ...]


def make_metadata_request(names: Sequence[TopicName] | None) -> ClientRequest:
    """Asks for topics by name, for all of them if ``names`` is ``None``; creates none."""
    topics = None if names is None else [{"topic_id": None, "name": name} for name in names]
    return ClientRequest(METADATA, {"topics": topics, "allow_auto_topic_creation": False})


def compute_topics(response: Any, racks: Mapping[int, str | None]) -> Iterable[Topic]:
    """The topics of a Metadata response that exist; ``racks`` are those of the brokers.

    A topic that the cluster did not say anything certain of, such as while a leader is elected, is
    there: only the error of the topic itself counts, not those of its partitions.
    """
    for topic in response.topics:
        if topic.error_code != ErrorCode.NONE or not topic.partitions or topic.name is None:
            continue
        yield Topic(
            TopicName(topic.name),
            compute_topic_id(topic.name, getattr(topic, "topic_id", None)),
            # The numbers of partitions have no holes.
            len(topic.partitions),
            _compute_racks(topic.partitions, racks),
        )


def compute_missing(response: Any) -> frozenset[TopicName]:
    """The topics that were asked for by name and do not exist."""
    return frozenset(
        TopicName(topic.name)
        for topic in response.topics
        if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and topic.name is not None
    )


def compute_topic_id(name: str, topic_id: bytes | None) -> TopicId:
    """The id of a topic; one of its name where the cluster has no ids (Kafka before 2.8)."""
    if topic_id is not None and topic_id != ZERO_TOPIC_ID:
        return TopicId(topic_id)
    return TopicId(hashlib.sha256(_NAMESPACE + name.encode()).digest()[:16])


def compute_changes(
    image: TopicImage, found: Iterable[Topic], missing: Iterable[TopicName]
) -> TopicChanges:
    """What differs from ``image``. ``missing`` are topics that certainly do not exist.

    A topic never shrinks: a broker whose metadata is behind is not believed. One with another id
    was deleted and created again.
    """
    changed = tuple(topic for topic in found if _is_news(image.by_name.get(topic.name), topic))
    return TopicChanges(changed, tuple(sorted(name for name in missing if name in image.by_name)))


def _is_news(known: Topic | None, topic: Topic) -> bool:
    if known is None or known.topic_id != topic.topic_id:
        return True
    return topic.partitions > known.partitions or (
        topic.partitions == known.partitions and topic.racks != known.racks
    )


def _compute_racks(
    partitions: Sequence[Any], racks: Mapping[int, str | None]
) -> tuple[tuple[str, ...], ...]:
    """The racks of each partition's replicas; empty where no broker has one."""
    if not any(racks.values()):
        return ()
    ordered = sorted(partitions, key=lambda partition: int(partition.partition_index))
    return tuple(
        tuple(sorted({rack for node in each.replica_nodes if (rack := racks.get(node))}))
        for each in ordered
    )
