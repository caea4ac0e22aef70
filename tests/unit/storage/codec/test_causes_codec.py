"""Keys and values of the ledger of rebalances."""

from __future__ import annotations

import pytest

from model.ids import GroupId, InstanceId, MemberId, TopicName
from model.past.causes import Cause, CauseKind
from model.past.rebalances import HeldUp, HeldUpBy, Rebalance
from storage.causes_codec import (
    decode_causes_key,
    decode_rebalance,
    encode_causes_key,
    encode_causes_prefix,
    encode_rebalance,
)
from storage.codec.errors import CodecError

G = GroupId("g\u00fc")
FULL = Rebalance(
    1_000,
    4,
    6,
    is_classic=True,
    cause=Cause(
        CauseKind.SESSION_EXPIRED,
        MemberId("m"),
        "client",
        "10.0.0.1",
        InstanceId("i"),
        "why",
        TopicName("t"),
        45_012,
    ),
    causes=3,
    moved=12,
    converged_ms=1_250,
    held_up=tuple(HeldUp(MemberId("n"), "other", by, 200) for by in HeldUpBy),
)


@pytest.mark.parametrize("kind", CauseKind)
def test_a_rebalance_comes_back(kind: CauseKind) -> None:
    for rebalance in (FULL, Rebalance(1_000, 1, 2, False, Cause(kind))):
        key = encode_causes_key(G, rebalance.at_ms, rebalance.epoch)
        assert decode_causes_key(key) == (G, rebalance.at_ms, rebalance.epoch)
        assert decode_rebalance(key, encode_rebalance(rebalance)) == rebalance


def test_keys_of_a_group_are_together_and_in_order() -> None:
    places = [(1, 9), (2, 1), (2, 2), (1 << 40, 1)]
    keys = [
        encode_causes_key(GroupId(group), *at) for group in ("a", "b", "ab", "a\0") for at in places
    ]
    assert sorted(keys) == [
        encode_causes_key(GroupId(group), *at) for group in ("a", "b", "a\0", "ab") for at in places
    ]
    prefix = encode_causes_prefix(GroupId("a"))
    assert [decode_causes_key(key)[1:] for key in keys if key.startswith(prefix)] == places


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"", encode_rebalance(FULL)),
        (b"\0\0\0\xffg" + bytes(12), encode_rebalance(FULL)),
        (b"\0\0\0\1\xff" + bytes(12), encode_rebalance(FULL)),
        (encode_causes_key(G, 1, 1), b"\xff"),
        (encode_causes_key(G, 1, 1), b""),
    ],
)
def test_bad_bytes_are_refused(key: bytes, value: bytes) -> None:
    with pytest.raises(CodecError):
        decode_rebalance(key, value)
