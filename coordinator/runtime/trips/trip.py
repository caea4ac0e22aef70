"""The record of one request's way, and of one sync of the log."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NamedTuple


class Stage(IntEnum):
    """The stages of a request, in their order; a request need not pass all of them."""

    RECEIVED = 0
    DECODED = 1
    SUBMITTED = 2
    """Checked and authorized by its front end, and handed to the runtime."""
    HANDLING = 3
    HANDLED = 4
    APPENDED = 5
    """Its records are in memory, and gathered for the next write."""
    WRITTEN = 6
    SYNCED = 7
    REPLIED = 8
    """The front end was given the response."""
    ANSWERED = 9


@dataclass(frozen=True, slots=True)
class SpanId:
    """The ids of a span in W3C's trace context: 16 and 8 bytes, as numbers."""

    trace: int
    span: int


class Parent(NamedTuple):
    """The span of a client that a request belongs to."""

    span: SpanId
    is_sampled: bool


class Door:
    """What a trip came in by."""

    KAFKA: Final = "kafka"
    GRPC: Final = "grpc"


@dataclass(slots=True)
class Sync:
    """One sync of the log; ``covers`` are the traced requests in it, or the first of many."""

    span: SpanId
    wall_ns: int
    began_ns: int
    ended_ns: int = 0
    covers: list[SpanId] = field(default_factory=list)
    requests: int = 0
    """All traced requests in it."""


@dataclass(slots=True)
class Trip:
    """One request. ``times_ns`` are by stage, 0 for a stage not passed.

    They are of a monotonic clock; ``wall_ns`` is when the request was received. ``name`` is an API
    of Kafka or a method of gRPC.
    """

    span: SpanId
    parent: SpanId | None
    wall_ns: int
    times_ns: list[int]
    door: str = Door.KAFKA
    name: str = ""
    key: int = -1
    """Kafka's API key; -1 with gRPC."""
    version: int = 0
    client_id: str = ""
    group_id: str = ""
    error: str = ""
    """The name of Kafka's error code."""
    status: str = ""
    """The name of gRPC's status, if the call failed with one."""
    is_repeated: bool = False
    """Served from what its connection remembers of an earlier request."""
    ends_with_reply: bool = False
    sync: Sync | None = None
    """The sync that made it durable."""

    def note(self, stage: Stage, now_ns: int) -> None:
        """Note when a stage was passed for the first time."""
        if not self.times_ns[stage]:
            self.times_ns[stage] = now_ns
