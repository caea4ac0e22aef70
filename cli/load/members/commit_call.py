"""OffsetCommit of a member, or of a group without members."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from cli.load.members.member import Member, make_correlation_id
from cli.load.wire.lane import Call
from cli.load.wire.messages import OFFSET_COMMIT, decode_answer, encode_frame, make_request

_NO_MEMBER: Final = -1
_MARK: Final = 0x5EED_0FF5_E75E_ED00
_MARK_BYTES: Final = _MARK.to_bytes(8, "big")
_ROW_BYTES: Final = 18
"""Of a partition in the request: number, offset, leader epoch, empty metadata, no tags."""


class CommitCall(Call):
    """Commits an offset higher by one each time, for the same partitions."""

    __slots__ = (
        "_correlation_id",
        "_epoch",
        "_frame",
        "_group_id",
        "_offset",
        "_offsets",
        "_partitions",
        "_topic",
        "member",
    )

    def __init__(self, group_id: str, member: Member | None, topic: str, partitions: range) -> None:
        super().__init__()
        self.member = member
        self._group_id = group_id
        self._topic = topic
        self._partitions = partitions
        self._correlation_id = make_correlation_id()
        self._offset = 0
        self._epoch: int | None = None
        self._frame = bytearray()
        self._offsets: Any = None

    def prepare(self) -> None:
        """Encode the request, so that this is not done under load."""
        epoch = _NO_MEMBER if self.member is None else self.member.epoch
        if epoch != self._epoch:
            self._encode(epoch)

    def make_frame(self) -> bytes:
        """The commit of the next offset, with the member's epoch."""
        self.prepare()
        self._offset += 1
        self._offsets[...] = self._offset
        return bytes(self._frame)

    def handle(self, answer: bytes) -> int:
        """The first error code among the partitions."""
        response = decode_answer(OFFSET_COMMIT, self._correlation_id, answer)
        for topic in response.topics:
            for partition in topic.partitions:
                if partition.error_code:
                    code: int = partition.error_code
                    return code
        self.quiet = answer
        return 0

    def _encode(self, epoch: int) -> None:
        """Encode the request once, and find where its offsets are."""
        rows = [
            {"partition_index": number, "committed_offset": _MARK, "committed_metadata": ""}
            for number in self._partitions
        ]
        request = make_request(
            OFFSET_COMMIT,
            group_id=self._group_id,
            generation_id_or_member_epoch=epoch,
            member_id="" if self.member is None else self.member.member_id,
            topics=[{"name": self._topic, "partitions": rows}],
        )
        self._epoch = epoch
        self._frame = bytearray(encode_frame(OFFSET_COMMIT, self._correlation_id, request))
        self._offsets = np.ndarray(
            (len(rows),), ">i8", self._frame, self._frame.index(_MARK_BYTES), (_ROW_BYTES,)
        )
