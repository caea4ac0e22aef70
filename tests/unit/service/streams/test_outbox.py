"""What a session has to say, in messages of a bounded size."""

from __future__ import annotations

from coordinator.service.streams.outbox import Outbox
from muster.v1 import group_pb2, types_pb2


def update(number: int, partitions: int = 0) -> group_pb2.MemberUpdate:
    topics = [types_pb2.TopicPartitions(topic_id=bytes(16), partitions=range(partitions))]
    assignment = group_pb2.Assignment(assignment=types_pb2.PartitionSet(topics=topics))
    return group_pb2.MemberUpdate(group_id="g", member_id=f"m{number}", assignment=assignment)


def drain(outbox: Outbox) -> list[group_pb2.SessionResponse]:
    messages = []
    while (message := outbox.next_message()) is not None:
        messages.append(message)
    return messages


def test_an_empty_outbox_has_nothing_to_say() -> None:
    outbox = Outbox()
    outbox.renewed_sequence = 5
    assert drain(outbox) == []


def test_messages_are_bounded_by_number_and_by_size() -> None:
    outbox = Outbox()
    for number in range(2_500):
        outbox.add(update(number))
    messages = drain(outbox)
    assert [len(message.updates) for message in messages] == [1_000, 1_000, 500]
    for number in range(4):
        outbox.add(update(number, partitions=200_000))
    messages = drain(outbox)
    assert [len(message.updates) for message in messages] == [1, 1, 1, 1]
    names = [entry.member_id for message in messages for entry in message.updates]
    assert names == ["m0", "m1", "m2", "m3"]


def test_a_renewal_is_said_only_after_all_that_was_found_with_it() -> None:
    """Else a client would believe in a lease of a member whose fence is in the next message."""
    outbox = Outbox()
    outbox.renewed_sequence = 9
    for number in range(1_001):
        outbox.add(update(number))
    assert [message.renewed_sequence for message in drain(outbox)] == [0, 9]


def test_a_ping_is_sent_once_and_numbered() -> None:
    outbox = Outbox()
    for expected in (1, 2):
        outbox.add_ping()
        (message,) = drain(outbox)
        assert message.ping.ping_id == expected
    outbox.add_ping()
    outbox.clear()
    assert drain(outbox) == []
