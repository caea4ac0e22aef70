"""What can be wrong with segment files; each message is one line for people."""

from __future__ import annotations

from pathlib import Path

from model.ids import LogPartition


class SegmentError(Exception):
    """Segment files cannot be read or written."""


class NotSegments(SegmentError):
    """The path holds no segment, or something that is none."""


class UnfinishedCleaning(SegmentError):
    """A folder as a broker's cleaner, or its deletion of segments, has it for a moment.

    Where the broker runs it passes; where it has stopped, or the folder was copied, it stays.
    """


class TargetInUse(SegmentError):
    """The folder to be written is there already and holds something."""


class SegmentDamage(SegmentError):
    """A segment is not what Kafka wrote.

    ``position`` is the byte in ``file`` at which the bad batch begins, ``offset`` the log offset
    that would come next there, where it is known.
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
    """The last batch of a partition was not written whole, as a crash leaves it.

    It was never acknowledged, and Kafka cuts it off when it starts.
    """


class UnsupportedMessageFormat(SegmentDamage):
    """A batch has message format v0 or v1, which Kafka wrote before 0.11."""
