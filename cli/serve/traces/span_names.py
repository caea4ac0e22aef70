"""What spans are named and say, by OpenTelemetry's semantic conventions (messaging, and rpc).

https://opentelemetry.io/docs/specs/semconv/messaging/kafka/ and .../rpc/grpc/. What these have no
name for begins with ``muster.``.
"""

from __future__ import annotations

from typing import Final

from coordinator.runtime.trips.trip import Door, Stage, Trip

SERVICE: Final = "muster"
SYNC: Final = "sync log"
REQUESTS: Final = "muster.sync.requests"

STEPS: Final = (
    ("decode", Stage.RECEIVED, Stage.DECODED),
    ("authorize", Stage.DECODED, Stage.SUBMITTED),
    ("queue", Stage.SUBMITTED, Stage.HANDLING),
    ("handle", Stage.HANDLING, Stage.HANDLED),
    ("append", Stage.HANDLED, Stage.APPENDED),
    ("write", Stage.APPENDED, Stage.WRITTEN),
    ("flush", Stage.WRITTEN, Stage.SYNCED),
    ("answer", Stage.REPLIED, Stage.ANSWERED),
)
"""The spans of a request: the first name, from one stage to another."""

_COMMITS: Final = frozenset({"OffsetCommit", "TxnOffsetCommit"})


def compute_steps(trip: Trip) -> list[tuple[str, int, int]]:
    """(name, begin, end) of the spans below a trip's own, in order; times of a monotonic clock."""
    times_ns = list(trip.times_ns)
    answered_ns = times_ns[Stage.ANSWERED]
    if not times_ns[Stage.REPLIED]:
        times_ns[Stage.REPLIED] = times_ns[Stage.SYNCED]
    if not times_ns[Stage.HANDLING]:
        # Handled at once: by the runtime, or by the front end alone.
        begun_ns = times_ns[Stage.SUBMITTED] or times_ns[Stage.DECODED]
        times_ns[Stage.HANDLING] = begun_ns
    if not times_ns[Stage.HANDLED]:
        times_ns[Stage.HANDLED] = times_ns[Stage.APPENDED] or times_ns[Stage.REPLIED] or answered_ns
    found = []
    for name, first, last in STEPS:
        begin_ns, end_ns = times_ns[first], times_ns[last]
        if begin_ns and end_ns >= begin_ns:
            found.append((name, begin_ns, end_ns))
    return found


def compute_attributes(trip: Trip) -> dict[str, str | int | bool]:
    """The attributes of a trip's own span."""
    said: dict[str, str | int | bool] = {}
    if trip.door == Door.GRPC:
        said["rpc.system.name"] = "grpc"
        said["rpc.method"] = trip.name
        said["rpc.response.status_code"] = trip.status or "OK"
    else:
        said["messaging.system"] = "kafka"
        said["messaging.operation.name"] = trip.name
        said["muster.kafka.api_key"] = trip.key
        said["muster.kafka.api_version"] = trip.version
        if trip.name in _COMMITS:
            said["messaging.operation.type"] = "settle"
    if trip.group_id:
        said["messaging.consumer.group.name"] = trip.group_id
    if trip.client_id:
        said["messaging.client.id"] = trip.client_id
    if has_failed(trip):
        said["error.type"] = trip.status or trip.error
    if trip.is_repeated:
        said["muster.repeated"] = True
    return said


def has_failed(trip: Trip) -> bool:
    """Whether the response is an error, or has one."""
    return bool(trip.status or trip.error)


def compute_name(trip: Trip) -> str:
    """The name of a trip's own span: of few different values, so without the group."""
    return trip.name or "request"
