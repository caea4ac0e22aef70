"""Topics given by name and count, on a command line or in a file."""

from pathlib import Path

import pytest

from cli.topic_spec import read_topics_file
from wording.topics import TopicSpec, TopicSpecError, merge_topics, parse_topic


def test_name_equals_partitions() -> None:
    assert parse_topic("orders=12") == TopicSpec("orders", 12)


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("orders", "is not NAME=PARTITIONS"),
        ("orders=", "is not a number of partitions"),
        ("orders=-1", "is not a number of partitions"),
        ("orders=٣", "is not a number of partitions"),
        ("orders=0", "there must be at least 1"),
        ("orders=2147483648", "2147483648 partitions"),
        ("=3", "is not a valid topic name"),
        ("..=3", "is not a valid topic name"),
        ("a b=3", "is not a valid topic name"),
        ("a" * 250 + "=3", "is longer than 249"),
    ],
)
def test_what_is_no_topic_is_refused(text: str, mistake: str) -> None:
    with pytest.raises(TopicSpecError, match=mistake):
        parse_topic(text)


def test_a_file_maps_names_to_counts(tmp_path: Path) -> None:
    file = tmp_path / "topics.yaml"
    file.write_text("orders: 12\npayments: {partitions: 4}\n")
    assert read_topics_file(file) == [TopicSpec("orders", 12), TopicSpec("payments", 4)]
    file.write_text("orders: {partitions: 3, racks: [[a, b, a], [], [b]]}\n")
    assert read_topics_file(file) == [TopicSpec("orders", 3, (("a", "b"), (), ("b",)))]
    file.write_text("# nothing\n")
    assert read_topics_file(file) == []


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("- orders", "write one line for each topic"),
        ("orders: twelve", "is not a number of partitions"),
        ("orders: true", "is not a number of partitions"),
        ("orders: {partition: 3}", "is not a number of partitions"),
        ("1: 3", "is not a valid topic name"),
        ("orders: {partitions: 1, racks: a}", "write the racks as a list"),
        ("orders: {partitions: 1, racks: [a]}", "partition 0: 'a' is not a list of rack names"),
        ("orders: {partitions: 1, racks: [['']]}", "is not a list of rack names"),
        ("orders: {partitions: 1, racks: [[a], [b]]}", "has 1 partitions, but racks for 2"),
        ("a: [", "is not YAML"),
    ],
)
def test_a_file_that_is_wrong_is_named(text: str, mistake: str, tmp_path: Path) -> None:
    file = tmp_path / "topics.yaml"
    file.write_text(text)
    with pytest.raises(TopicSpecError, match=mistake) as caught:
        read_topics_file(file)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TopicSpecError, match="cannot read"):
        read_topics_file(tmp_path / "gone.yaml")


def test_a_topic_is_asked_for_once() -> None:
    twice = [TopicSpec("a", 1), TopicSpec("b", 2), TopicSpec("a", 1)]
    assert merge_topics(twice) == [TopicSpec("a", 1), TopicSpec("b", 2)]
    in_racks = TopicSpec("a", 1, (("x",),))
    assert merge_topics([TopicSpec("a", 1), in_racks, TopicSpec("a", 1)]) == [in_racks]
    with pytest.raises(TopicSpecError, match="a is given with 1 and with 3"):
        merge_topics([TopicSpec("a", 1), TopicSpec("a", 3)])
