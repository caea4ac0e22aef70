"""Errors of segment files; each message is one line for the operator."""

from __future__ import annotations

from pathlib import Path

from model.ids import LogPartition


class SegmentError(Exception):
    """Segment files cannot be read or written."""


class NotSegments(SegmentError):
    """The path holds no segments, or a file that is not a segment."""


class UnfinishedCleaning(SegmentError):
    """The folder is in an intermediate state of the broker's log cleaner or segment deletion.

    While the broker runs, the state is transient. It persists if the broker stopped, or if the
    folder was copied, at that moment.
    """


class TargetInUse(SegmentError):
    """The folder to be written already exists and is not empty."""


class SegmentDamage(SegmentError):
    """A segment is damaged.

    ``position`` is the byte in ``file`` at which the damaged batch begins, ``offset`` the log
    offset expected there, if known.
    """

    def __init__(
        self, what: str, partition: LogPartition, file: Path, position: int, offset: int | None
    ) -> None:
        at = "" if offset is None else f", offset {offset}"
        super().__init__(f"partition {partition}, {file}, byte {position}{at}: {what}")
        self.what = what
        self.partition = partition
        self.file = file
        self.position = position
        self.offset = offset


class TornTail(SegmentDamage):
    """The last batch of a partition is incomplete, as after a crash during a write.

    It was never acknowledged, and Kafka truncates it when it starts.
    """


class UnsupportedMessageFormat(SegmentDamage):
    """A batch has message format v0 or v1, which Kafka wrote before 0.11."""
