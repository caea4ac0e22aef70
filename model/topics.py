"""Topic metadata: an immutable image, replaced on every change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from types import MappingProxyType

from model.ids import TopicId, TopicName
from model.layered_map import compute_changed, compute_merged
from model.value import value

NAME_LENGTH_MAX = 249
"""Longest topic name, as in Kafka."""


@value
class Topic:
    """A topic with ``partitions`` partitions, numbered from 0.

    ``racks`` has the racks of the replicas of each partition; it is empty if none are known.
    """

    name: TopicName
    topic_id: TopicId
    partitions: int
    racks: tuple[tuple[str, ...], ...] = ()


@value
class TopicImage:
    """All topics at one version. The version grows by one with each change.

    ``by_metric_name`` maps names with ``.`` or ``_`` as metrics show them: Kafka replaces ``.`` by
    ``_`` there, so two topics must not differ in these characters alone.
    """

    version: int = 0
    by_name: Mapping[TopicName, Topic] = field(default_factory=lambda: MappingProxyType({}))
    by_id: Mapping[TopicId, Topic] = field(default_factory=lambda: MappingProxyType({}))
    by_metric_name: Mapping[str, TopicName] = field(default_factory=lambda: MappingProxyType({}))


def compute_metric_name(name: TopicName) -> str | None:
    """The name as Kafka's metrics show it; ``None`` if it cannot collide with another topic's."""
    return name.replace(".", "_") if "." in name or "_" in name else None


def compute_image_with(image: TopicImage, topic: Topic) -> TopicImage:
    """The image with ``topic`` added, or replacing the topic of that name."""
    old = image.by_name.get(topic.name)
    ids: dict[TopicId, Topic | None] = {} if old is None else {old.topic_id: None}
    metric_name = compute_metric_name(topic.name)
    metric_names = image.by_metric_name
    if metric_name is not None:
        metric_names = compute_changed(metric_names, {metric_name: topic.name})
    return TopicImage(
        image.version + 1,
        compute_changed(image.by_name, {topic.name: topic}),
        compute_changed(image.by_id, {**ids, topic.topic_id: topic}),
        metric_names,
    )


def compute_image_without(image: TopicImage, name: TopicName) -> TopicImage:
    """The image without the topic of that name; the same image if there is none."""
    old = image.by_name.get(name)
    if old is None:
        return image
    metric_name = compute_metric_name(name)
    metric_names = image.by_metric_name
    if metric_name is not None:
        metric_names = compute_changed(metric_names, {metric_name: None})
    return TopicImage(
        image.version + 1,
        compute_changed(image.by_name, {name: None}),
        compute_changed(image.by_id, {old.topic_id: None}),
        metric_names,
    )


def compute_image_changed(
    image: TopicImage, changed: Iterable[Topic], gone: Iterable[TopicName]
) -> TopicImage:
    """The image with many topics added, replaced or removed, in one step."""
    topics = dict(image.by_name)
    for name in gone:
        topics.pop(name, None)
    topics.update((topic.name, topic) for topic in changed)
    return compute_image_of(tuple(topics.values()), image.version + 1)


def compute_settled_image(image: TopicImage) -> TopicImage:
    """The same topics at the same version, in flat mappings with fast lookups."""
    return TopicImage(
        image.version,
        compute_merged(image.by_name),
        compute_merged(image.by_id),
        compute_merged(image.by_metric_name),
    )


def compute_image_of(topics: tuple[Topic, ...], version: int = 1) -> TopicImage:
    """An image of exactly these topics."""
    return TopicImage(
        version,
        MappingProxyType({topic.name: topic for topic in topics}),
        MappingProxyType({topic.topic_id: topic for topic in topics}),
        MappingProxyType(
            {found: topic.name for topic in topics if (found := compute_metric_name(topic.name))}
        ),
    )
