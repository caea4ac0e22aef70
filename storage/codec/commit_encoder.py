"""Offset commits of one group in one topic, again and again: their bytes but for the numbers.

Equal to what ``hot`` and ``batches`` make of the records (a property test says so). A commit of one
offset without metadata, alone in its batch, is packed in one piece.
"""

from __future__ import annotations

import struct
from typing import Final

import crc32c

from model.ids import TopicId
from storage.codec.batches import BODY_HEAD, LENGTH_OFFSET, MAGIC, PREFIX
from storage.codec.hot import encode_offset_key_prefix
from storage.codec.wire import INT32, encode_zigzag

_VERSION: Final = 4
_NO_METADATA: Final = 1
_NUMBERS: Final = "hqibq"
"""Version, offset, leader epoch, length of the metadata, commit timestamp."""
_TOPIC_ID_TAG: Final = b"\x01\x00\x10"


class CommitEncoder:
    """Type 1, v4, without metadata. Leader epochs are -1 where there is none."""

    __slots__ = (
        "_head",
        "_keys",
        "_length",
        "_pack_body",
        "_pack_value",
        "_prefix",
        "_tail",
        "_value_at",
        "_value_end",
        "_value_length",
        "size",
    )

    def __init__(self, group: str, topic: str, topic_id: TopicId) -> None:
        self._prefix = encode_offset_key_prefix(group, topic)
        self._keys: dict[int, bytes] = {}
        self._tail = _TOPIC_ID_TAG + topic_id
        value = struct.Struct(f">{_NUMBERS}{len(self._tail)}s")
        self._pack_value = value.pack
        # Attributes, no timestamp delta, no offset delta, then the key up to its partition.
        body = b"\x00\x00\x00" + encode_zigzag(len(self._prefix) + INT32.size) + self._prefix
        self._value_length = encode_zigzag(value.size)
        # Behind the value is the count of headers.
        record_size = len(body) + INT32.size + len(self._value_length) + value.size + 1
        self._head = encode_zigzag(record_size) + body
        batch = struct.Struct(
            f"{BODY_HEAD.format}{len(self._head)}si{len(self._value_length)}s"
            f"{_NUMBERS}{len(self._tail)}sx"
        )
        self._pack_body = batch.pack
        self._length = PREFIX.size + batch.size - LENGTH_OFFSET
        self._value_end = batch.size - 1
        self._value_at = self._value_end - value.size
        self.size = PREFIX.size + batch.size
        """Of a batch with one commit."""

    def encode_key(self, partition: int) -> bytes:
        """The key of a partition, made once."""
        key = self._keys.get(partition)
        if key is None:
            key = self._keys[partition] = self._prefix + INT32.pack(partition)
        return key

    def encode_value(self, offset: int, leader_epoch: int, commit_timestamp: int) -> bytes:
        """The value of one offset."""
        return self._pack_value(
            _VERSION, offset, leader_epoch, _NO_METADATA, commit_timestamp, self._tail
        )

    def encode_batch(
        self,
        base_offset: int,
        wall_ms: int,
        partition: int,
        offset: int,
        leader_epoch: int,
        commit_timestamp: int,
    ) -> tuple[bytes, bytes]:
        """A batch with one offset, and its value alone."""
        body = self._pack_body(
            0, 0, wall_ms, wall_ms, -1, -1, 0, 1,
            self._head, partition, self._value_length,
            _VERSION, offset, leader_epoch, _NO_METADATA, commit_timestamp, self._tail,
        )  # fmt: skip
        head = PREFIX.pack(base_offset, self._length, 0, MAGIC, crc32c.crc32c(body))
        return head + body, body[self._value_at : self._value_end]
