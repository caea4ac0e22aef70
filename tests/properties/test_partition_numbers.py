"""Numbers of partitions under any order of giving them and giving them back."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from coordinator.core.state.consumer.partition_numbers import PartitionNumbers
from model.ids import TopicId
from model.log.records import TopicPartitions

GIVE, GIVE_BACK = "give", "give back"
TOPICS = [TopicId(bytes([letter]) * 16) for letter in b"abcdefgh"]
Step: TypeAlias = tuple[str, int, int]
"""Which topic is to have how many partitions, or is had by nobody any more."""

STEPS = st.lists(
    st.tuples(st.sampled_from([GIVE, GIVE_BACK]), st.integers(0, 7), st.integers(1, 6)),
    max_size=60,
)


def run(steps: list[Step], had: dict[TopicId, int]) -> PartitionNumbers:
    """``had`` is how many partitions each topic has that somebody has."""
    numbers = PartitionNumbers()
    for what, topic, partitions in steps:
        topic_id = TOPICS[topic]
        if what == GIVE:
            numbers.ensure(topic_id, partitions)
            had[topic_id] = max(had.get(topic_id, 0), partitions)
        else:
            before = read(numbers, had)
            had.pop(topic_id, None)
            used = np.zeros(len(numbers), np.bool_)
            for other, count in had.items():
                # One of them is enough.
                used[numbers.numbers_of(other, [count - 1])] = True
            old, numbers = numbers, numbers.without_unused(used)
            assert all(before[other] == found for other, found in read(numbers, had).items())
            assert all(read(old, {other: had[other]})[other] == before[other] for other in had)
        read(numbers, had)
    return numbers


def read(numbers: PartitionNumbers, had: dict[TopicId, int]) -> dict[TopicId, list[int]]:
    """The numbers of each topic, which say the same backwards."""
    found = {topic_id: numbers.numbers_of(topic_id, range(n)) for topic_id, n in had.items()}
    everything = sorted(number for each in found.values() for number in each)
    assert len(set(everything)) == len(everything)
    assert not everything or everything[-1] < len(numbers)
    assert set(numbers.topic_partitions(everything)) == {
        TopicPartitions(topic_id, tuple(range(n))) for topic_id, n in had.items()
    }
    epochs = numbers.assigned_topic_partitions({number: number for number in everything})
    assert {topic.topic_id: list(topic.assignment_epochs or ()) for topic in epochs} == found
    for topic_id, own in found.items():
        index = numbers.topic_indexes[topic_id]
        assert numbers.topics[index] == topic_id
        assert numbers.topic_indexes_of(own) == {index}
        assert {numbers.topic_index(number) for number in own} == {index}
    return found


@given(STEPS)
def test_numbers_are_of_one_partition_each_as_long_as_somebody_has_it(steps: list[Step]) -> None:
    had: dict[TopicId, int] = {}
    numbers = run([*steps, (GIVE_BACK, 0, 1)], had)
    assert set(numbers.topics) == set(numbers.topic_indexes) == set(had)
    assert len(numbers._ranges) == len(numbers._bases)


@given(st.lists(st.integers(1, 6), min_size=300, max_size=300))
def test_what_is_given_back_is_given_again(sizes: list[int]) -> None:
    """Topics come and go beside one that stays: there are no more numbers than of a few of them."""
    steps: list[Step] = [(GIVE, 0, 6)]
    for number, size in enumerate(sizes):
        steps += [(GIVE, 1 + number % 7, size), (GIVE_BACK, 1 + (number + 5) % 7, 1)]
    assert len(run(steps, {})) <= 6 * 10
