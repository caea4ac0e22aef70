"""The bytes that a leader reads and sends."""

from __future__ import annotations

import pytest

from muster.assignors.classic import (
    JoinedMember,
    Member,
    UnknownAssignorError,
    compute_assignment_bytes,
    encode_member_metadata,
)
from muster.assignors.embedded import (
    MalformedProtocolError,
    Subscription,
    TopicPartitions,
    decode_assignment,
    decode_subscription,
    encode_cooperative_user_data,
    encode_subscription,
    make_subscription,
)


def join(member_id: str, metadata: bytes) -> JoinedMember:
    return JoinedMember(member_id, None, metadata)


def test_a_range_group() -> None:
    joined = [
        join("b", bytes.fromhex("0000 00000001 0001 74 ffffffff")),
        join("a", bytes.fromhex("0003 00000001 0001 74 ffffffff 00000000 ffffffff ffff")),
    ]
    assert compute_assignment_bytes("range", joined, {"t": 3}) == {
        "a": bytes.fromhex("0003 00000001 0001 74 00000002 00000000 00000001 ffffffff"),
        "b": bytes.fromhex("0003 00000001 0001 74 00000001 00000002 ffffffff"),
    }


def test_an_older_version_can_be_written() -> None:
    joined = [join("a", encode_subscription(make_subscription(["t"]), 0))]
    answer = compute_assignment_bytes("roundrobin", joined, {}, version=1)
    assert answer == {"a": bytes.fromhex("0001 00000000 ffffffff")}


def test_a_member_that_says_nothing_readable_is_named() -> None:
    joined = [join("good", encode_subscription(make_subscription(["t"]))), join("bad", b"\0")]
    with pytest.raises(MalformedProtocolError, match="member 'bad': 2 bytes expected at byte 0"):
        compute_assignment_bytes("range", joined, {"t": 1})


def test_an_assignor_that_is_none() -> None:
    with pytest.raises(UnknownAssignorError):
        compute_assignment_bytes("uniform", [], {})
    with pytest.raises(UnknownAssignorError):
        encode_member_metadata("uniform", Member("a", []))


HAD = Member("a", ["t"], rack="r", owned={"t": [1, 0]}, generation=4)


@pytest.mark.parametrize(
    ("name", "user_data", "owned"),
    [
        ("range", None, ()),
        ("roundrobin", None, ()),
        ("sticky", "00000001 0001 74 00000002 00000000 00000001 00000004", ()),
        ("cooperative-sticky", "00000004", (TopicPartitions("t", (0, 1)),)),
    ],
)
def test_what_a_member_says(
    name: str, user_data: str | None, owned: tuple[TopicPartitions, ...]
) -> None:
    said = decode_subscription(encode_member_metadata(name, HAD))
    expected = None if user_data is None else bytes.fromhex(user_data)
    assert said == Subscription(("t",), expected, owned, 4, "r")


def test_what_a_member_says_that_had_nothing() -> None:
    """As in Kafka: `sticky` then has no user data, `cooperative-sticky` always has some."""
    new = Member("a", ["t"])
    assert decode_subscription(encode_member_metadata("sticky", new)).user_data is None
    said = decode_subscription(encode_member_metadata("cooperative-sticky", new))
    assert said.user_data == bytes.fromhex("ffffffff")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_cooperative_members_of_all_versions_are_believed(version: int) -> None:
    """Version 1 has no generation: it comes from the user data."""
    newer = Member("b", ["t"], owned={"t": [2, 3]}, generation=4)
    older = Member("a", ["t"], owned={"t": [0, 1, 2]}, generation=3)
    joined = [
        join(each.member_id, encode_member_metadata("cooperative-sticky", each, version))
        for each in (older, newer)
    ]
    answer = compute_assignment_bytes("cooperative-sticky", joined, {"t": 4})
    assigned = {
        member: decode_assignment(data).partitions[0].partitions for member, data in answer.items()
    }
    assert assigned == {"a": (0, 1), "b": (2, 3)}


@pytest.mark.parametrize("user_data", [None, b"", b"\0\0", encode_cooperative_user_data(-1)])
def test_without_generation_owned_partitions_are_the_oldest_claims(user_data: bytes | None) -> None:
    without = Subscription(("t",), user_data, (TopicPartitions("t", (0, 1, 2)),))
    joined = [
        join("a", encode_subscription(without, 1)),
        join(
            "b",
            encode_member_metadata(
                "cooperative-sticky", Member("b", ["t"], owned={"t": [2, 3]}, generation=0)
            ),
        ),
    ]
    answer = compute_assignment_bytes("cooperative-sticky", joined, {"t": 4})
    assert decode_assignment(answer["a"]).partitions == (TopicPartitions("t", (0, 1)),)
    assert decode_assignment(answer["b"]).partitions == (TopicPartitions("t", (2, 3)),)
