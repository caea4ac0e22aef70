"""The offset of a stream in its checkpoint: the next offsets, and marks of what it has read.

The offsets have the format of Spark's Kafka source, ``{"__consumer_offsets": {"0": 12}}``. ``log``
identifies the log, if anything does, and ``read`` has a mark for each partition: its number, and
the fields of ``Mark``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.schema import TOPIC
from pipeline.source.logs.marks import Mark

JsonOffset = dict[str, Any]

_LOG = "log"
_READ = "read"


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """``offsets`` and ``marks`` are by partition; ``log`` is ``GroupLog.identity``."""

    offsets: Mapping[int, int]
    log: str | None = None
    marks: Mapping[int, Mark] = field(default_factory=dict)

    def write(self) -> JsonOffset:
        """As JSON; equal offsets give equal text, because Spark compares the text."""
        found = write_offsets(self.offsets)
        if self.log is not None:
            found[_LOG] = self.log
        if self.marks:
            found[_READ] = [[partition, *mark] for partition, mark in sorted(self.marks.items())]
        return found


def write_offsets(offsets: Mapping[int, int]) -> JsonOffset:
    """Offsets alone, in the format of the Kafka source."""
    return {TOPIC: {str(partition): offset for partition, offset in sorted(offsets.items())}}


def read_offset(content: JsonOffset) -> StreamOffset:
    """Parse a checkpoint's offset; those of versions without marks have offsets alone."""
    return StreamOffset(
        {int(partition): offset for partition, offset in content[TOPIC].items()},
        content.get(_LOG),
        {partition: Mark(*mark) for partition, *mark in content.get(_READ, ())},
    )
