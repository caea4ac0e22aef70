"""Topic images are immutable values, and adding a topic is cheap however many there are."""

from __future__ import annotations

import random

import pytest

from coordinator.core.groups.topic_records import check_topic_name
from model.errors import InvalidTopic
from model.ids import TopicId, TopicName
from model.topics import (
    Topic,
    TopicImage,
    compute_image_of,
    compute_image_with,
    compute_image_without,
    compute_settled_image,
)


def make_topic(number: int, incarnation: int = 0) -> Topic:
    name = f"t_{number}" if number % 2 else f"t-{number}"
    return Topic(TopicName(name), TopicId(f"{number:08d}{incarnation:08d}".encode()), 1)


def test_images_are_what_their_topics_say_after_any_changes() -> None:
    rng = random.Random(848)
    image, topics = TopicImage(), dict[TopicName, Topic]()
    kept: list[tuple[TopicImage, dict[TopicName, Topic]]] = []
    for step in range(3_000):
        topic = make_topic(rng.randrange(400), step)
        if rng.random() < 0.4 and topic.name in topics:
            image = compute_image_without(image, topic.name)
            del topics[topic.name]
        else:
            image = compute_image_with(image, topic)
            topics[topic.name] = topic
        if step % 100 == 0:
            image = compute_settled_image(image) if rng.random() < 0.5 else image
            kept.append((image, dict(topics)))
    for version, expected in kept:
        whole = compute_image_of(tuple(expected.values()))
        for found, wanted in (
            (version.by_name, whole.by_name),
            (version.by_id, whole.by_id),
            (version.by_metric_name, whole.by_metric_name),
        ):
            assert dict(found) == dict(wanted)
            assert len(found) == len(wanted)
            assert set(found) == set(wanted)
            assert all(key in found and found.get(key) == wanted[key] for key in wanted)
        assert TopicName("other") not in version.by_name
        assert version.by_name.get(TopicName("other")) is None


def count_steps(topics: int) -> int:
    """The number of copied entries while topics are added one by one."""
    image = TopicImage()
    copied = 0
    for number in range(topics):
        image = compute_image_with(image, make_topic(number))
        layers = (getattr(image.by_name, "_changes", None), image.by_name)
        copied += len(layers[0]) if layers[0] is not None else len(image.by_name)
    return copied


def test_topics_one_by_one_copy_far_less_than_all_topics_each_time() -> None:
    small, large = count_steps(2_000), count_steps(8_000)
    assert large < 8.5 * small, "n topics cost n * sqrt(n), not n * n"
    assert large < 8_000 * 8_000 // 50


def test_a_name_that_differs_by_dots_and_underscores_alone_collides() -> None:
    image = compute_image_with(TopicImage(), Topic(TopicName("a.b_c"), TopicId(b"1" * 16), 1))
    with pytest.raises(InvalidTopic, match=r"collides with the existing topic 'a.b_c'"):
        check_topic_name(image, TopicName("a_b.c"))
    check_topic_name(image, TopicName("a-b_c"))
    check_topic_name(image, TopicName("a.b_c"))
    check_topic_name(compute_image_without(image, TopicName("a.b_c")), TopicName("a_b.c"))
