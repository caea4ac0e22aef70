"""What a connection keeps of its last commit, so that the next one like it costs little.

A consumer commits the same partitions of the same topic again and again: its requests are the same
but for the correlation id and the numbers of each partition. After the first of them what stands
around those numbers is kept with a ``CommitTicket`` (``KeptCommit``). The next one that has the
same around them is not decoded, and its answer is put together from bytes that are kept as well.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from coordinator.runtime.api import CommitTicket
from gateway.apis.offset_commit_wire import KEY, Commit, encode_commit_response
from model.commands import OffsetCommit
from model.errors import ErrorCode
from model.responses import PartitionResult, TopicResult

if TYPE_CHECKING:
    from gateway.api import RequestContext
    from gateway.connection import Connection

ROW: Final = struct.Struct(">iqi")
"""Partition, offset and leader epoch."""
_ROW_TAIL: Final = 2
"""No metadata, no tagged fields."""
_END: Final = b"\x00\x00"
"""No tagged fields of the topic, nor of the request."""
_START: Final = struct.Struct(">ihh")
"""Length, API and version of a frame."""
_HEAD_AT: Final = 12
_RESULT: Final = struct.Struct(">i5x")
"""A partition without error, and the end of the answer."""


class KeptCommit:
    """Commits of one partition of one topic by one caller.

    A frame is ``start``, the correlation id, ``head``, the numbers and ``tail``; its answer
    ``answer_start``, the correlation id, ``answer_head`` and the result of the partition.
    """

    __slots__ = (
        "_answer_head",
        "_answer_start",
        "_head",
        "_length",
        "_row_at",
        "_start",
        "_tail",
        "_ticket",
    )

    def __init__(self, version: int, raw: bytes, topic: TopicResult, ticket: CommitTicket) -> None:
        """``raw`` is the request from its client id on."""
        row_at = len(raw) - len(_END) - _ROW_TAIL - ROW.size
        self._start = _START.pack(_HEAD_AT - 4 + len(raw), KEY, version)
        self._head = raw[:row_at]
        self._tail = raw[row_at + ROW.size :]
        self._row_at = _HEAD_AT + row_at
        self._length = _HEAD_AT + len(raw)
        self._ticket = ticket
        # The header of the answer ends with an empty tag section.
        body = b"\x00" + encode_commit_response((topic,), version)
        self._answer_start = struct.pack(">i", 4 + len(body))
        self._answer_head = body[: -_RESULT.size]

    def commit(self, connection: Connection, data: bytes, now_ms: int) -> PendingCommit | None:
        """Commit what a frame says that differs in nothing but the numbers.

        ``None``, and nothing done, where it differs in more, where more than a frame came, or
        where the ticket does not do it.
        """
        if (
            len(data) != self._length
            or not data.startswith(self._head, _HEAD_AT)
            or not data.endswith(self._tail)
            or not data.startswith(self._start)
        ):
            return None
        partition, offset, leader_epoch = ROW.unpack_from(data, self._row_at)
        pending = PendingCommit(
            connection,
            b"%b%b%b%b"
            % (self._answer_start, data[8:12], self._answer_head, _RESULT.pack(partition)),
        )
        if leader_epoch < 0:
            leader_epoch = -1
        if self._ticket.commit(partition, offset, leader_epoch, now_ms, pending.release):
            return pending
        return None


class PendingCommit:
    """A commit that is being made durable, in its place among the requests of its connection.

    ``frame`` is its answer.
    """

    __slots__ = ("_connection", "answered", "frame")

    def __init__(self, connection: Connection, frame: bytes) -> None:
        self._connection = connection
        self.frame = frame
        self.answered = False

    def release(self) -> None:
        """It is durable: answer it."""
        self.answered = True
        self._connection.send_answered()

    def abandon(self) -> None:
        """The connection is gone; the commit is made all the same."""


def compute_kept_commit(
    context: RequestContext, request: Commit, command: OffsetCommit
) -> KeptCommit | None:
    """What to keep of a request that is being submitted; ``None`` where it is not worth it."""
    raw, topics = context.raw, request.topics
    if not raw or len(topics) != 1 or len(topics[0].partitions) != 1:
        return None
    (topic,) = topics
    (offset,) = topic.partitions
    row_at = len(raw) - len(_END) - _ROW_TAIL - ROW.size
    leader_epoch = -1 if offset.leader_epoch is None else offset.leader_epoch
    is_plain = (
        raw.endswith(_END)
        and raw[-3] == 0
        and raw[-4] <= 1
        and ROW.unpack_from(raw, row_at) == (offset.partition, offset.offset, leader_epoch)
    )
    ticket = context.node.coordinator.commit_ticket(command) if is_plain else None
    if ticket is None:
        return None
    result = TopicResult(
        topic.name, topic.topic_id, (PartitionResult(offset.partition, ErrorCode.NONE),)
    )
    return KeptCommit(context.version, raw, result, ticket)
