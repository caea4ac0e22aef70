"""The recorded group with patterns, asked again of a server on virtual time: the records of its
patterns and of its epochs are Kafka's, and so are the words for a pattern that is none.

What the server answers is compared in ``test_wire_replay.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from model.log.records import ConsumerGroupRegularExpressionValue
from storage.codec.batches import decode_batch
from storage.codec.record_codec import decode_key, decode_value, encode_key, encode_value
from tests.golden.test_wire_replay import list_groups
from tests.golden.wire_replay import Replayed, WireReplay, load_replayed
from tests.support.storage.golden import logged_records

GROUP = "o14-regex"
EPOCH_TYPE, REGEX_TYPE = 3, 16
TIMER_MS = 200
"""Kafka resolves with the next heartbeat after its least interval, and we when that has passed."""


@cache
def replay() -> tuple[WireReplay, list[Replayed]]:
    replayed = WireReplay(row for row in load_replayed() if list_groups(row) == [GROUP])
    return replayed, list(replayed.run())


def kafkas_records() -> Iterator[dict[str, Any]]:
    for record in logged_records():
        if record["typeId"] in (EPOCH_TYPE, REGEX_TYPE) and record["keyJson"]["groupId"] == GROUP:
            yield record


def decode_type(key: bytes) -> int:
    return int.from_bytes(key[:2], "big")


def our_records() -> Iterator[tuple[bytes, bytes | None]]:
    server = replay()[0].server
    partition = server.runtime.partition_of(server.group(GROUP).group_id)
    for batch in server.store.read_log(partition):
        for record in decode_batch(batch).records:
            assert record.key is not None
            if decode_type(record.key) in (EPOCH_TYPE, REGEX_TYPE):
                yield record.key, record.value


def test_patterns_and_epochs_are_written_as_kafka_writes_them() -> None:
    """In Kafka's order but for that of two patterns, which is a hash map's there."""
    ours = [_without_time(key, value) for key, value in our_records()]
    kafkas = [
        _without_time(
            bytes.fromhex(record["key"]),
            None if record["value"] is None else bytes.fromhex(record["value"]),
        )
        for record in kafkas_records()
    ]
    assert len(ours) == len(kafkas)
    assert set(ours) == set(kafkas)
    assert [each for each in ours if decode_type(each[0]) == EPOCH_TYPE] == [
        each for each in kafkas if decode_type(each[0]) == EPOCH_TYPE
    ]


def _without_time(key: bytes, value: bytes | None) -> tuple[bytes, bytes]:
    """A pattern's record without the version and the time at its end, and the tags."""
    if value is None:
        return key, b""
    return key, value[: -8 - 8 - 1] if decode_type(key) == REGEX_TYPE else value


def test_the_times_of_resolutions_are_kafkas() -> None:
    ours = [
        value.timestamp
        for key, data in our_records()
        if data is not None
        and isinstance(
            value := decode_value(decode_type(key), data)[1], ConsumerGroupRegularExpressionValue
        )
    ]
    kafkas = [
        record["valueJson"]["timestamp"]
        for record in kafkas_records()
        if record["typeId"] == REGEX_TYPE and record["valueJson"] is not None
    ]
    assert len(ours) == len(kafkas) == 5
    for at_ms, kafkas_ms in zip(ours, kafkas, strict=True):
        since_ms, kafkas_since_ms = at_ms - ours[0], kafkas_ms - kafkas[0]
        assert kafkas_since_ms - 2 * TIMER_MS <= since_ms <= kafkas_since_ms


def test_kafkas_records_of_patterns_are_our_bytes() -> None:
    count = 0
    for record in kafkas_records():
        key = bytes.fromhex(record["key"])
        assert encode_key(decode_key(key)) == key
        if record["value"] is not None:
            value = bytes.fromhex(record["value"])
            assert encode_value(decode_value(record["typeId"], value)[1]) == value
            count += 1
    assert count == 12


def test_a_pattern_that_is_none_is_refused_in_kafkas_words() -> None:
    refused = [
        (answer["errorCode"], answer["errorMessage"], row["responseJson"]["errorMessage"])
        for row, answer in replay()[1]
        if row["responseJson"].get("errorCode")
    ]
    message = (
        "SubscribedTopicRegex `(unclosed` is not a valid regular expression: missing closing )."
    )
    assert (128, message, message) in refused
