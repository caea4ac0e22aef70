"""Topics as the coordinator sees them: an immutable image, replaced when anything changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType

from model.ids import TopicId, TopicName
from model.value import value


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
    """All topics at one version. Versions grow by one with each change."""

    version: int = 0
    by_name: Mapping[TopicName, Topic] = field(default_factory=lambda: MappingProxyType({}))
    by_id: Mapping[TopicId, Topic] = field(default_factory=lambda: MappingProxyType({}))


def compute_image_with(image: TopicImage, topic: Topic) -> TopicImage:
    """The image with ``topic`` added, or put in the place of one with its name."""
    by_name = dict(image.by_name)
    by_id = dict(image.by_id)
    old = by_name.get(topic.name)
    if old is not None:
        del by_id[old.topic_id]
    by_name[topic.name] = topic
    by_id[topic.topic_id] = topic
    return TopicImage(image.version + 1, MappingProxyType(by_name), MappingProxyType(by_id))


def compute_image_without(image: TopicImage, name: TopicName) -> TopicImage:
    """The image without the topic of that name; the same image where there is none."""
    old = image.by_name.get(name)
    if old is None:
        return image
    by_name = {key: topic for key, topic in image.by_name.items() if key != name}
    by_id = {key: topic for key, topic in image.by_id.items() if key != old.topic_id}
    return TopicImage(image.version + 1, MappingProxyType(by_name), MappingProxyType(by_id))


def compute_image_of(topics: tuple[Topic, ...], version: int = 1) -> TopicImage:
    """An image of just these topics."""
    return TopicImage(
        version,
        MappingProxyType({topic.name: topic for topic in topics}),
        MappingProxyType({topic.topic_id: topic for topic in topics}),
    )
