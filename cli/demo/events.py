"""What a worker writes down: one line of JSON for each thing that happened to it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    """What happened."""

    JOINING = "joining"
    """It is about to ask for membership."""
    ASSIGNED = "assigned"
    """It owns these partitions from now on."""
    REVOKED = "revoked"
    """It has stopped with these partitions, and will say so to the server."""
    LOST = "lost"
    """It has been told that these partitions may be somebody else's already."""
    COMMITTED = "committed"
    """The server has acknowledged these offsets."""
    FAILED = "failed"
    """Something went wrong that it goes on after; `detail` says what."""
    LEFT = "left"
    """It has left the group."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event. ``at_s`` is the machine's monotonic clock, the same for all processes."""

    at_s: float
    worker: str
    kind: Kind
    partitions: tuple[int, ...] = ()
    offsets: Mapping[int, int] = field(default_factory=dict)
    detail: str = ""


def encode_event(event: Event) -> str:
    """One line."""
    return json.dumps(
        {
            "at_s": event.at_s,
            "worker": event.worker,
            "kind": event.kind,
            "partitions": event.partitions,
            "offsets": {str(partition): offset for partition, offset in event.offsets.items()},
            "detail": event.detail,
        }
    )


def decode_event(line: str) -> Event:
    """The event of a line. Raises ``ValueError`` for anything else."""
    content = json.loads(line)
    if not isinstance(content, dict):
        raise ValueError(f"not an event: {line!r}")
    return Event(
        float(content["at_s"]),
        str(content["worker"]),
        Kind(content["kind"]),
        tuple(content["partitions"]),
        {int(partition): offset for partition, offset in content["offsets"].items()},
        str(content["detail"]),
    )


class Recorder:
    """Writes the events of one worker to standard output, each at once."""

    def __init__(self, worker: str) -> None:
        self._worker = worker

    def record(
        self,
        kind: Kind,
        partitions: Iterable[int] = (),
        offsets: Mapping[int, int] | None = None,
        detail: str = "",
    ) -> None:
        """Writes an event down as of now."""
        event = Event(
            time.monotonic(), self._worker, kind, tuple(sorted(partitions)), offsets or {}, detail
        )
        sys.stdout.write(encode_event(event) + "\n")
        sys.stdout.flush()
