"""Which records the demo's consumers have read, and which twice."""

from cli.demo.events import Event, Kind, decode_event, encode_event
from cli.demo.upstream.reads import Reads


def read(worker: str, partition: int, first: int, end: int) -> Event:
    return Event(0.0, worker, Kind.READ, offsets={partition: end}, firsts={partition: first})


def assigned(worker: str, *partitions: int) -> Event:
    return Event(0.0, worker, Kind.ASSIGNED, partitions)


def make(*events: Event) -> Reads:
    reads = Reads()
    for event in events:
        reads.add(event)
    return reads


def test_an_event_survives_its_line() -> None:
    event = read("a", 3, 10, 15)
    assert decode_event(encode_event(event)) == event


def test_what_nobody_has_read_is_missing() -> None:
    reads = make(read("a", 0, 0, 5), read("a", 0, 7, 10))
    assert reads.count_missing({0: 10}) == 2
    assert reads.count_missing({0: 12}) == 4
    assert reads.count_missing({0: 5}) == 0
    assert reads.count_missing({1: 3}) == 3
    assert reads.count_read() == 8


def test_the_next_owner_may_read_some_again() -> None:
    reads = make(read("a", 0, 0, 10), assigned("b", 0), read("b", 0, 6, 12))
    assert (reads.count_duplicates(), reads.count_missing({0: 12}), reads.again) == (4, 0, [])


def test_the_same_owner_may_not() -> None:
    reads = make(assigned("a", 0), read("a", 0, 0, 10), read("a", 0, 8, 12))
    assert reads.again == ["a read partition 0 from 8 on again"]


def test_a_partition_that_is_given_back_to_its_owner_is_a_new_ownership() -> None:
    reads = make(read("a", 0, 0, 10), assigned("a", 0), read("a", 0, 8, 12))
    assert reads.again == []
    assert reads.count_duplicates() == 2


def test_more_reads_of_a_record_than_can_be_counted_are_no_error() -> None:
    reads = make(*(event for _ in range(300) for event in (assigned("a", 0), read("a", 0, 0, 1))))
    assert reads.count_read() == 1
    assert reads.count_duplicates() == 254
