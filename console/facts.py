"""What the server tells the console of itself: facts that no service has."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Listener:
    """Where clients connect to."""

    name: str
    protocol: str
    address: str


@dataclass(frozen=True, slots=True)
class LogPartition:
    """A partition of the log of groups and offsets."""

    number: int
    groups: int
    is_loaded: bool
    is_stopped: bool


@dataclass(frozen=True, slots=True)
class Times:
    """How long something took since the start: counts below each bound, and above the last."""

    bounds_s: Sequence[float] = ()
    counts: Sequence[int] = (0,)
    sum_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Disk:
    """Bytes and ages of the data folder; with ``history_max_bytes`` the oldest part goes."""

    store_bytes: int = 0
    topics_bytes: int = 0
    free_bytes: int = 0
    min_free_bytes: int = 0
    history_bytes: int = 0
    history_max_bytes: int = 0
    history_age_ms: int = 0
    history_max_ms: int = 0


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of the moment, and since the start."""

    topics: int = 0
    topic_partitions: int = 0
    kafka_connections: int = 0
    grpc_sessions: int = 0
    waiting_members: int = 0
    unsettled_keys: int = 0
    writes_refused: int = 0
    invariant_violations: int = 0
    history_partitions_left: int = 0
    stalled_ms: int = 0
    audit_lines_left_out: int = 0


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """The server at one moment. ``certificates``: when each listener's ends, seconds since 1970."""

    cluster_id: str
    node_id: int
    process_id: int
    started_ms: int
    is_ready: bool
    listeners: Sequence[Listener] = ()
    log_partitions: Sequence[LogPartition] = ()
    counts: Counts = Counts()
    disk: Disk = Disk()
    flushes: Times = Times()
    writes: Times = Times()
    loop: Times = Times()
    collections: Times = Times()
    certificates: Mapping[str, float] = field(default_factory=dict)


FindFacts: TypeAlias = Callable[[], Awaitable[ServerFacts]]
