"""Commit templates: what a connection keeps of its last commit to serve repeats of it cheaply.

A consumer commits the same partitions of the same topic again and again: its requests differ only
in the correlation id and in each partition's numbers. After the first commit, the bytes around
those numbers are kept together with a ``CommitTicket``: ``CommitTemplate`` for one partition,
``CommitRowsTemplate`` for many. A request with the same bytes around its numbers is not decoded,
and its response is put together from kept bytes too.
"""

from __future__ import annotations

import struct
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from coordinator.runtime.api import CommitTicket
from gateway.api import ClientConnection, RequestContext
from gateway.commits.guarded_repeats import GuardedRepeats
from gateway.commits.offset_commit_wire import KEY, Commit, encode_commit_response
from model.commands.offsets import OffsetCommit, TopicOffsets
from model.errors import ErrorCode
from model.log.commit_records import OffsetColumns
from model.responses.offsets import PartitionResult, TopicResult

ROW: Final = struct.Struct(">iqi")
"""Partition, offset and leader epoch."""
_ROW_TAIL: Final = 2
"""The bytes of a row after its numbers: no metadata, no tagged fields."""
_ROWS: Final = np.dtype(
    [
        ("partition", ">i4"),
        ("offset", ">i8"),
        ("leader_epoch", ">i4"),
        ("metadata", "u1"),
        ("tags", "u1"),
    ]
)
ROWS_MIN: Final = 8
"""Fewer partitions are decoded as fast without a template."""
_KNOWN_PARTITIONS_MAX: Final = 4_096
"""How many partitions' keys a connection keeps, summed over all sets of partitions."""
_END: Final = b"\x00\x00"
"""No tagged fields of the topic, nor of the request."""
_START: Final = struct.Struct(">ihh")
"""Length, API key and version of a frame."""
_HEAD_AT: Final = 12
_RESULT: Final = struct.Struct(">i5x")
"""A partition without error, and the end of the response."""
_ERROR: Final = struct.Struct(">h")
_AFTER_PARTITION: Final = struct.Struct(">h3x").size
"""The bytes of a response from the error of its last partition on."""
_RESULT_SIZE: Final = struct.Struct(">ihx").size


class CommitTemplate:
    """A template for commits of one partition of one topic by one caller.

    A frame is ``start``, the correlation id, ``head``, the numbers and ``tail``. Its response is
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
        # The response header ends with an empty tag section.
        body = b"\x00" + encode_commit_response((topic,), version)
        self._answer_start = struct.pack(">i", 4 + len(body))
        self._answer_head = body[: -_RESULT.size]

    def serve(self, client: ClientConnection, frame: bytes, now: float) -> PendingCommit | None:
        """Commit a frame that differs from the template only in its numbers (``Repeats``).

        Returns ``None`` for any other frame, and if the ticket does not allow the commit.
        """
        if (
            len(frame) != self._length
            or not frame.startswith(self._head, _HEAD_AT)
            or not frame.endswith(self._tail)
            or not frame.startswith(self._start)
        ):
            return None
        partition, offset, leader_epoch = ROW.unpack_from(frame, self._row_at)
        pending = PendingCommit(
            client,
            b"%b%b%b%b"
            % (self._answer_start, frame[8:12], self._answer_head, _RESULT.pack(partition)),
        )
        if leader_epoch < 0:
            leader_epoch = -1
        offsets = OffsetColumns((partition,), (offset,), (leader_epoch,))
        if self._ticket.commit(offsets, int(now * 1_000), pending.release):
            return pending
        return None


class CommitRowsTemplate:
    """A template for commits of a fixed number of partitions of one topic by one caller.

    Like ``CommitTemplate``, with one row per partition. For each set of partitions that repeats,
    the record keys and the response are kept too.
    """

    __slots__ = (
        "_count",
        "_head",
        "_known",
        "_length",
        "_row_at",
        "_start",
        "_ticket",
        "_topic",
        "_version",
    )

    def __init__(self, version: int, raw: bytes, topic: TopicResult, ticket: CommitTicket) -> None:
        """``raw`` is the request from its client id on."""
        self._count = len(topic.partitions)
        row_at = len(raw) - len(_END) - self._count * _ROWS.itemsize
        self._start = _START.pack(_HEAD_AT - 4 + len(raw), KEY, version)
        self._head = raw[:row_at]
        self._row_at = _HEAD_AT + row_at
        self._length = _HEAD_AT + len(raw)
        self._ticket = ticket
        self._version = version
        self._topic = topic
        self._known: dict[bytes, tuple[list[bytes], bytes, bytes]] = {}

    def serve(self, client: ClientConnection, frame: bytes, now: float) -> PendingCommit | None:
        """See ``CommitTemplate.serve``."""
        if (
            len(frame) != self._length
            or not frame.startswith(self._head, _HEAD_AT)
            or not frame.endswith(_END)
            or not frame.startswith(self._start)
        ):
            return None
        table = np.frombuffer(frame, _ROWS, self._count, self._row_at)
        if (table["metadata"] > 1).any() or table["tags"].any():
            return None
        known = self._known.get(table["partition"].tobytes()) or self._learn(table["partition"])
        if known is None:
            return None
        keys, answer_start, answer = known
        leader_epochs = np.maximum(table["leader_epoch"], -1).astype(">i4")
        offsets = OffsetColumns(table["partition"], table["offset"], leader_epochs, keys=keys)
        pending = PendingRows(client, answer_start + frame[8:12] + answer, self._count)
        if self._ticket.commit(offsets, int(now * 1_000), pending.release):
            return pending
        return None

    def _learn(self, partitions: NDArray[np.int32]) -> tuple[list[bytes], bytes, bytes] | None:
        """The keys of these partitions, and the response around its correlation id."""
        keys = self._ticket.name_partitions(partitions)
        if keys is None:
            return None
        results = tuple(PartitionResult(number, ErrorCode.NONE) for number in partitions.tolist())
        topic = TopicResult(self._topic.name, self._topic.topic_id, results)
        # The response header ends with an empty tag section.
        answer = b"\x00" + encode_commit_response((topic,), self._version)
        if len(self._known) * self._count >= _KNOWN_PARTITIONS_MAX:
            self._known.clear()
        known = self._known[partitions.tobytes()] = (
            keys,
            struct.pack(">i", 4 + len(answer)),
            answer,
        )
        return known


AnyTemplate: TypeAlias = CommitTemplate | CommitRowsTemplate


class PendingCommit:
    """A commit being made durable, in its place among the connection's requests.

    ``frame`` is its response.
    """

    __slots__ = ("_client", "answered", "began_s", "frame", "key")

    def __init__(self, client: ClientConnection, frame: bytes) -> None:
        self._client = client
        self.frame = frame
        self.began_s = 0.0
        self.key = KEY
        self.answered = False

    def release(self, error: ErrorCode = ErrorCode.NONE, /) -> None:
        """Answer the commit: it is durable, or it has failed."""
        if error:
            self._fail(error)
        self.answered = True
        self._client.send_answered()

    def _fail(self, error: ErrorCode) -> None:
        """Put the error in the place of the partition's."""
        frame = self.frame
        at = len(frame) - _AFTER_PARTITION
        self.frame = frame[:at] + _ERROR.pack(error) + frame[at + _ERROR.size :]

    def abandon(self) -> None:
        """The connection is closed; the commit is completed all the same."""


class PendingRows(PendingCommit):
    """The same for a commit of ``count`` partitions."""

    __slots__ = ("_count",)

    def __init__(self, client: ClientConnection, frame: bytes, count: int) -> None:
        super().__init__(client, frame)
        self._count = count

    def _fail(self, error: ErrorCode) -> None:
        failed = bytearray(self.frame)
        last = len(failed) - _AFTER_PARTITION
        for number in range(self._count):
            _ERROR.pack_into(failed, last - number * _RESULT_SIZE, error)
        self.frame = bytes(failed)


def keep_template(context: RequestContext, request: Commit, command: OffsetCommit) -> None:
    """Replace the connection's template by one of this commit, or by none.

    The caller is authorized for all of the commit.
    """
    kept = _compute_kept(context, request, command)
    if kept is None:
        context.client.repeats.pop(KEY, None)
    elif context.node.allows_all:
        context.client.repeats[KEY] = kept
    else:
        context.client.repeats[KEY] = GuardedRepeats(kept, context.node.authorizer)


def _compute_kept(
    context: RequestContext, request: Commit, command: OffsetCommit
) -> AnyTemplate | None:
    """The template of a request being submitted; ``None`` if it is not worth keeping."""
    raw, topics = context.raw, request.topics
    if not raw or len(topics) != 1 or not _is_plain(raw, topics[0]):
        return None
    (topic,) = topics
    ticket = context.node.coordinator.commit_ticket(command)
    if ticket is None:
        return None
    results = tuple(PartitionResult(partition, ErrorCode.NONE) for partition in topic.partitions)
    result = TopicResult(topic.name, topic.topic_id, results)
    kept = CommitTemplate if len(results) == 1 else CommitRowsTemplate
    return kept(context.version, raw, result, ticket)


def _is_plain(raw: bytes, topic: TopicOffsets) -> bool:
    """Whether the request is nothing but the template and its partitions' numbers."""
    count = len(topic.partitions)
    size = count * _ROWS.itemsize
    if not (count == 1 or count >= ROWS_MIN) or len(raw) < size + len(_END):
        return False
    table = np.frombuffer(raw, _ROWS, count, len(raw) - len(_END) - size)
    return (
        raw.endswith(_END)
        and not (table["metadata"] > 1).any()
        and not table["tags"].any()
        and tuple(table["partition"].tolist()) == topic.offsets.partitions
        and tuple(table["offset"].tolist()) == topic.offsets.offsets
    )
