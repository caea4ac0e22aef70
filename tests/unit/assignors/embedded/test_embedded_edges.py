"""Malformed bytes, unknown versions, and values out of range."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from muster.assignors.embedded import (
    Assignment,
    MalformedProtocolError,
    StickyUserData,
    Subscription,
    TopicPartitions,
    decode_assignment,
    decode_cooperative_user_data,
    decode_sticky_user_data,
    decode_subscribed_topics,
    decode_subscription,
    encode_assignment,
    encode_cooperative_user_data,
    encode_sticky_user_data,
    encode_subscription,
)

SUBSCRIPTION = Subscription(
    ("a", "bc"), b"data", (TopicPartitions("a", (0, 7)), TopicPartitions("bc", ())), 5, "rack"
)
ASSIGNMENT = Assignment((TopicPartitions("a", (0, 7)),), b"data")
Decode = Callable[[bytes], object]

DECODERS: list[tuple[Decode, bytes]] = [
    (decode_subscription, encode_subscription(SUBSCRIPTION)),
    (decode_subscribed_topics, encode_subscription(SUBSCRIPTION, 0)),
    (decode_assignment, encode_assignment(ASSIGNMENT)),
    (decode_cooperative_user_data, encode_cooperative_user_data(3)),
]
each_decoder = pytest.mark.parametrize(
    ("decode", "data"), DECODERS, ids=[decode.__name__ for decode, _ in DECODERS]
)


@each_decoder
def test_bytes_that_end_early(decode: Decode, data: bytes) -> None:
    decode(data)
    for end in range(len(data)):
        with pytest.raises(MalformedProtocolError):
            decode(data[:end])


@each_decoder
def test_what_follows_is_left_alone(decode: Decode, data: bytes) -> None:
    assert decode(data + b"more") == decode(data)


@each_decoder
def test_any_changed_byte_gives_an_answer_or_the_one_error(decode: Decode, data: bytes) -> None:
    for at in range(len(data)):
        for byte in (0x00, 0x7F, 0x80, 0xFF):
            changed = data[:at] + bytes([byte]) + data[at + 1 :]
            with suppress(MalformedProtocolError):
                decode(changed)


@pytest.mark.parametrize("version", [4, 5, 0x7FFF])
def test_newer_versions_are_read_as_the_newest_known(version: int) -> None:
    prefix = version.to_bytes(2, "big")
    newer = prefix + encode_subscription(SUBSCRIPTION)[2:] + b"a field of the future"
    assert decode_subscription(newer) == SUBSCRIPTION
    newer = prefix + encode_assignment(ASSIGNMENT)[2:] + b"a field of the future"
    assert decode_assignment(newer) == ASSIGNMENT


@pytest.mark.parametrize("version", [-1, -2, -0x8000])
@pytest.mark.parametrize("decode", [decode_subscription, decode_subscribed_topics])
def test_versions_below_0_are_refused(decode: Decode, version: int) -> None:
    data = version.to_bytes(2, "big", signed=True) + encode_subscription(SUBSCRIPTION)[2:]
    with pytest.raises(MalformedProtocolError, match=f"version {version} of the subscr"):
        decode(data)
    with pytest.raises(MalformedProtocolError, match=f"version {version} of the assignm"):
        decode_assignment(data)


def test_old_versions_leave_out_what_they_do_not_have() -> None:
    read = [decode_subscription(encode_subscription(SUBSCRIPTION, v)) for v in range(4)]
    assert [each.owned_partitions != () for each in read] == [False, True, True, True]
    assert [each.generation for each in read] == [-1, -1, 5, 5]
    assert [each.rack for each in read] == [None, None, None, "rack"]


def test_version_1_may_end_before_what_is_owned() -> None:
    """kafka-go, platformatic and faust write this; their members own nothing when they join."""
    oldest = encode_subscription(SUBSCRIPTION, 0)
    assert decode_subscription(b"\0\1" + oldest[2:]) == decode_subscription(oldest)
    for later in (b"\0\2", b"\0\3", b"\0\4"):
        with pytest.raises(MalformedProtocolError):
            decode_subscription(later + oldest[2:])
    with pytest.raises(MalformedProtocolError):
        decode_subscription(b"\0\1" + oldest[2:] + b"\0\0\0")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("0000 7fffffff", "invalid array length 2147483647 at byte 2"),
        ("0000 ffffffff", "invalid array length -1 at byte 2"),
        ("0000 00000001 ffff ffffffff", "-1 bytes expected at byte 8"),
        ("0000 00000001 0001 ff ffffffff", "the string at byte 8 is not UTF-8"),
        ("0000 00000000 fffffffe", "-2 bytes expected at byte 10"),
        ("0001 00000000 ffffffff 00000001 0001 61 3fffffff", "invalid array length 1073741823"),
    ],
)
def test_lengths_that_cannot_be(data: str, said: str) -> None:
    with pytest.raises(MalformedProtocolError, match=said):
        decode_subscription(bytes.fromhex(data))


@pytest.mark.parametrize(
    "encode",
    [
        lambda: encode_subscription(SUBSCRIPTION, 4),
        lambda: encode_subscription(SUBSCRIPTION, -1),
        lambda: encode_assignment(ASSIGNMENT, 4),
        lambda: encode_sticky_user_data(StickyUserData(()), 2),
        lambda: decode_sticky_user_data(b"\0\0\0\0", 2),
        lambda: encode_subscription(Subscription(("x" * 32_768,))),
        lambda: encode_subscription(Subscription(("\ud800",))),
        lambda: encode_subscription(Subscription((), generation=1 << 31)),
        lambda: encode_assignment(Assignment((TopicPartitions("a", (1 << 31,)),))),
        lambda: encode_cooperative_user_data(-(1 << 31) - 1),
    ],
)
def test_what_cannot_be_written(encode: Callable[[], object]) -> None:
    with pytest.raises(MalformedProtocolError):
        encode()


class TestStickyUserData:
    partitions = (TopicPartitions("a", (0, 7)), TopicPartitions("bc", ()))

    def test_without_generation_it_is_version_0(self) -> None:
        data = encode_sticky_user_data(StickyUserData(self.partitions, 9), version=0)
        assert decode_sticky_user_data(data) == StickyUserData(self.partitions, -1)

    def test_half_a_generation_is_none(self) -> None:
        data = encode_sticky_user_data(StickyUserData(self.partitions, 9), version=1)
        for missing in (1, 2, 3):
            read = decode_sticky_user_data(data[:-missing])
            assert read == StickyUserData(self.partitions, -1)

    def test_a_leader_of_version_0_reads_version_1(self) -> None:
        data = encode_sticky_user_data(StickyUserData(self.partitions, 9), version=1)
        read = decode_sticky_user_data(data, highest_version=0)
        assert read == StickyUserData(self.partitions, -1)

    def test_partitions_that_end_early_are_an_error(self) -> None:
        data = encode_sticky_user_data(StickyUserData(self.partitions), version=0)
        for end in range(len(data)):
            with pytest.raises(MalformedProtocolError):
                decode_sticky_user_data(data[:end])
