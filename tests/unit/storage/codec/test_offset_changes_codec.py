"""Entries of changes of offsets: what is read is what was written, and bad bytes are an error."""

from __future__ import annotations

import pytest

from model.ids import GroupId, LogOffset
from model.past.offset_changes import OffsetChange, OffsetChangeKind
from storage.causes_codec import encode_causes_key
from storage.codec.errors import CodecError
from storage.offset_changes_codec import (
    CHANGES_PREFIX,
    decode_change_key,
    decode_offset_change,
    encode_change_key,
    encode_offset_change,
)

G = GroupId("grüße")


@pytest.mark.parametrize("kind", OffsetChangeKind)
@pytest.mark.parametrize("undoes", [None, LogOffset(0)])
def test_a_change_is_read_as_it_was_written(
    kind: OffsetChangeKind, undoes: LogOffset | None
) -> None:
    change = OffsetChange(kind, 1_700, "User:x", LogOffset(7), LogOffset(9), 3, undoes)
    key = encode_change_key(G, 7)
    assert decode_change_key(key) == (G, 7)
    assert decode_offset_change(key, encode_offset_change(change)) == change


def test_changes_are_behind_all_rebalances_in_the_order_of_the_log() -> None:
    rebalance = encode_causes_key(GroupId("z" * 60_000), (1 << 63) - 1, 1 << 31)
    assert rebalance < CHANGES_PREFIX < encode_change_key(G, 0)
    assert encode_change_key(G, 255) < encode_change_key(G, 256)


@pytest.mark.parametrize(
    ("key", "data"),
    [
        (b"", b""),
        (encode_change_key(G, 7)[:-1], b"\x08\x01"),
        (encode_change_key(G, 7) + b"\0", b"\x08\x01"),
        (CHANGES_PREFIX + b"\0\0\0\x01\xff" + bytes(8), b"\x08\x01"),
        (encode_change_key(G, 7), b"\xff"),
        (encode_change_key(G, 7), b"\x08\x63"),
        (encode_change_key(G, 7), b""),
    ],
)
def test_bad_bytes_are_an_error(key: bytes, data: bytes) -> None:
    with pytest.raises(CodecError):
        decode_offset_change(key, data)
