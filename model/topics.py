"""Topics as the coordinator sees them: an immutable image, replaced when anything changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType

from model.ids import TopicId, TopicName
from model.layered_map import compute_changed, compute_merged
from model.value import value

NAME_LENGTH_MAX = 249
"""Of a topic, as in Kafka."""


@value
class Topic:
    """A topic: ``partitions`` is their number; partitions are 0 to partitions - 1.

    ``racks`` has the racks of the replicas of each partition, or is empty where none are known.
    """

    name: TopicName
    topic_id: TopicId
    partitions: int
    racks: tuple[tuple[str, ...], ...] = ()


@value
class TopicImage:
    """All topics at one version. Versions grow by one with each change.

    ``by_metric_name`` has the names with ``.`` or ``_``, which no two topics may differ in alone:
    Kafka's metrics have ``_`` for both.
    """

    version: int = 0
    by_name: Mapping[TopicName, Topic] = field(default_factory=lambda: MappingProxyType({}))
    by_id: Mapping[TopicId, Topic] = field(default_factory=lambda: MappingProxyType({}))
    by_metric_name: Mapping[str, TopicName] = field(default_factory=lambda: MappingProxyType({}))


def compute_metric_name(name: TopicName) -> str | None:
    """The name in Kafka's metrics where that is not its own, or may be another topic's."""
    return name.replace(".", "_") if "." in name or "_" in name else None


def compute_image_with(image: TopicImage, topic: Topic) -> TopicImage:
    """The image with ``topic`` added, or put in the place of one with its name."""
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
    """The image without the topic of that name; the same image where there is none."""
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


def compute_settled_image(image: TopicImage) -> TopicImage:
    """The same topics at the same version, in mappings that are quick to look into."""
    return TopicImage(
        image.version,
        compute_merged(image.by_name),
        compute_merged(image.by_id),
        compute_merged(image.by_metric_name),
    )


def compute_image_of(topics: tuple[Topic, ...], version: int = 1) -> TopicImage:
    """An image of just these topics."""
    return TopicImage(
        version,
        MappingProxyType({topic.name: topic for topic in topics}),
        MappingProxyType({topic.topic_id: topic for topic in topics}),
        MappingProxyType(
            {found: topic.name for topic in topics if (found := compute_metric_name(topic.name))}
        ),
    )
