"""The events that a worker records, one line of JSON each."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    """The kind of an event."""

    JOINING = "joining"
    """The worker is about to join."""
    ASSIGNED = "assigned"
    """The worker owns these partitions from now on."""
    REVOKED = "revoked"
    """The worker has stopped reading these partitions; the server does not know yet."""
    LOST = "lost"
    """The worker was told that these partitions may already have another owner."""
    READ = "read"
    """The worker has read the records from `firsts` up to, but not including, `offsets`."""
    COMMITTED = "committed"
    """The server has acknowledged these offsets."""
    FAILED = "failed"
    """An error after which the worker continues; `detail` has the message."""
    LEFT = "left"
    """The worker has left the group."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event. ``at_s`` is the machine's monotonic clock, common to all processes."""

    at_s: float
    worker: str
    kind: Kind
    partitions: tuple[int, ...] = ()
    offsets: Mapping[int, int] = field(default_factory=dict)
    detail: str = ""
    firsts: Mapping[int, int] = field(default_factory=dict)


def encode_event(event: Event) -> str:
    """Encode an event as one line."""
    return json.dumps(
        {
            "at_s": event.at_s,
            "worker": event.worker,
            "kind": event.kind,
            "partitions": event.partitions,
            "offsets": {str(partition): offset for partition, offset in event.offsets.items()},
            "detail": event.detail,
            "firsts": {str(partition): offset for partition, offset in event.firsts.items()},
        }
    )


def decode_event(line: str) -> Event:
    """Decode a line. Raises ``ValueError`` if it is not an event."""
    content = json.loads(line)
    if not isinstance(content, dict):
        raise ValueError(f"not an event: {line!r}")
    return Event(
        float(content["at_s"]),
        str(content["worker"]),
        Kind(content["kind"]),
        tuple(content["partitions"]),
        _decode_offsets(content["offsets"]),
        str(content["detail"]),
        _decode_offsets(content["firsts"]),
    )


def _decode_offsets(content: Mapping[str, int]) -> dict[int, int]:
    return {int(partition): offset for partition, offset in content.items()}


class Recorder:
    """Writes the events of one worker to standard output, without buffering."""

    def __init__(self, worker: str) -> None:
        self._worker = worker

    def record(
        self,
        kind: Kind,
        partitions: Iterable[int] = (),
        offsets: Mapping[int, int] | None = None,
        detail: str = "",
        firsts: Mapping[int, int] | None = None,
    ) -> None:
        """Write an event with the current time."""
        event = Event(
            time.monotonic(),
            self._worker,
            kind,
            tuple(sorted(partitions)),
            offsets or {},
            detail,
            firsts or {},
        )
        sys.stdout.write(encode_event(event) + "\n")
        sys.stdout.flush()
