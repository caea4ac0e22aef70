"""Topics as the cluster's Metadata has them, and what has changed in them."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from model.errors import ErrorCode
from model.ids import ZERO_TOPIC_ID, TopicId, TopicName
from model.topics import Topic, compute_image_of
from upstream.topics.read_topics import (
    compute_changes,
    compute_missing,
    compute_topic_id,
    compute_topics,
    make_metadata_request,
)

ID = TopicId(bytes(range(16)))
OTHER = TopicId(bytes(range(1, 17)))


def make_response(*topics: tuple[str | None, int, Sequence[Sequence[int]]]) -> Any:
    """Of (name, error code, replicas of each partition)."""
    return SimpleNamespace(
        topics=tuple(
            SimpleNamespace(
                name=name,
                topic_id=ID,
                error_code=error,
                partitions=tuple(
                    SimpleNamespace(partition_index=number, replica_nodes=tuple(nodes))
                    for number, nodes in reversed(list(enumerate(replicas)))
                ),
            )
            for name, error, replicas in topics
        )
    )


def make_topic(name: str, partitions: int = 1, topic_id: TopicId = ID) -> Topic:
    return Topic(TopicName(name), topic_id, partitions)


def test_racks_are_those_of_the_replicas_of_each_partition() -> None:
    response = make_response(("t", 0, [[1, 2], [2, 3], [9]]))
    (topic,) = compute_topics(response, {1: "a", 2: "b", 3: "b"})
    assert topic == Topic(TopicName("t"), ID, 3, (("a", "b"), ("b",), ()))


def test_without_racks_there_are_none() -> None:
    (topic,) = compute_topics(make_response(("t", 0, [[1], [2]])), {1: None, 2: None})
    assert topic == make_topic("t", 2)


@pytest.mark.parametrize(
    ("name", "error", "replicas"),
    [
        ("t", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, []),
        ("t", ErrorCode.LEADER_NOT_AVAILABLE, [[1]]),
        ("t", 0, []),
        (None, 0, [[1]]),
    ],
)
def test_what_the_cluster_does_not_say_for_certain_is_no_topic(
    name: str | None, error: int, replicas: list[list[int]]
) -> None:
    assert not list(compute_topics(make_response((name, error, replicas)), {}))


def test_only_what_does_not_exist_is_missing() -> None:
    response = make_response(
        ("gone", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, []),
        ("hidden", ErrorCode.TOPIC_AUTHORIZATION_FAILED, []),
        ("electing", ErrorCode.LEADER_NOT_AVAILABLE, []),
    )
    assert compute_missing(response) == {"gone"}


def test_a_topic_without_an_id_has_one_of_its_name() -> None:
    assert compute_topic_id("t", ID) == ID
    made = compute_topic_id("t", None)
    assert made == compute_topic_id("t", ZERO_TOPIC_ID)
    assert made != compute_topic_id("u", None)
    assert len(made) == len(ID)


def test_new_grown_and_recreated_topics_are_news() -> None:
    image = compute_image_of((make_topic("same"), make_topic("grown"), make_topic("again")))
    found = [
        make_topic("same"),
        make_topic("grown", 2),
        make_topic("again", 1, OTHER),
        make_topic("new"),
    ]
    changes = compute_changes(image, found, ())
    assert changes.changed == tuple(found[1:])
    assert changes.gone == ()


def test_a_broker_that_is_behind_makes_no_topic_smaller() -> None:
    image = compute_image_of((make_topic("t", 3),))
    assert compute_changes(image, [make_topic("t", 2)], ()).changed == ()


def test_of_some_topics_only_those_that_are_missing_are_gone() -> None:
    image = compute_image_of((make_topic("a"), make_topic("b")))
    assert compute_changes(image, [], frozenset({TopicName("b"), TopicName("x")})).gone == ("b",)


def test_changed_racks_are_news() -> None:
    image = compute_image_of((Topic(TopicName("t"), ID, 1, (("a",),)),))
    moved = Topic(TopicName("t"), ID, 1, (("b",),))
    assert compute_changes(image, [moved], ()).changed == (moved,)


def test_a_request_never_creates_topics() -> None:
    for names in (None, [TopicName("t")]):
        assert make_metadata_request(names).fields["allow_auto_topic_creation"] is False
