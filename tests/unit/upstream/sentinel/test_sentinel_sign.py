"""The sign of a Muster in its sentinel's assignment."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.assignors.embedded import Assignment, decode_assignment, encode_assignment
from upstream.sentinel.sentinel_sign import SentinelSign, decode_sign, encode_signed_assignment

SIGN = SentinelSign("uuid-1", "::1", 9092)


def test_the_sign_is_read_as_written_beside_the_partitions() -> None:
    data = encode_signed_assignment(SIGN, [("b", 1), ("a", 0), ("b", 0)])
    assert decode_sign(data) == SIGN
    partitions = decode_assignment(data).partitions
    assert [(each.topic, each.partitions) for each in partitions] == [("a", (0,)), ("b", (0, 1))]


@pytest.mark.parametrize(
    "user_data",
    [
        None,
        b"",
        b"muster",
        b"muster uuid",
        b"other uuid host:1",
        b"muster uuid host",
        b"muster uuid host:",
        b"muster uuid host:x",
        b"muster uuid host:65536",
        "muster uuid host:١".encode(),
        b"muster uuid host:1 more",
        b"\xff uuid host:1",
    ],
)
def test_what_is_no_sign_is_none(user_data: bytes | None) -> None:
    assert decode_sign(encode_assignment(Assignment((), user_data))) is None


@given(st.binary(max_size=200))
def test_any_bytes_are_read_without_an_error(data: bytes) -> None:
    decode_sign(data)
