"""Follows requests through the server, on the event loop.

A front end begins a trip; ``follow`` finds it when the request's command is submitted, and the
parts of the runtime (``coordinator.runtime.traced_parts``) note each stage. When the response is
written, the trip goes to ``sink``. Only a server that exports traces has any of this.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import islice
from random import Random
from time import perf_counter_ns, time_ns
from typing import Any, Final, TypeAlias

from coordinator.runtime.trips.trip import Door, Parent, SpanId, Stage, Sync, Trip
from model.commands.consumer import ConsumerGroupHeartbeat
from model.commands.offsets import OffsetCommit
from model.errors import ErrorCode, GroupError
from model.responses.offsets import OffsetCommitResponse

COVERS_MAX: Final = 128
"""A sync names so many of the requests in it at most."""
TEXT_MAX: Final = 256
"""So much of a client's id and of a group's is kept: many trips may wait to be exported."""
_ROWS_MAX: Final = 1_000
_STAGES: Final = len(Stage)

Sink: TypeAlias = Callable[[Trip | Sync], None]


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream whose messages are requests of their own."""

    name: str
    parent: Parent | None


CALL: Final[ContextVar[Trip | Stream | None]] = ContextVar("CALL", default=None)
"""The gRPC call that this task serves, if it is traced."""


class Trips:
    """The trips of one server.

    One of ``one_in`` requests is traced. A request with a parent is traced if the parent is.
    """

    def __init__(
        self,
        sink: Sink,
        one_in: int,
        random: Random,
        *,
        now_ns: Callable[[], int] = perf_counter_ns,
        wall_ns: Callable[[], int] = time_ns,
    ) -> None:
        self._sink = sink
        self._one_in = one_in
        self._random = random
        self.now_ns = now_ns
        self._wall_ns = wall_ns
        self.current: Trip | None = None
        """What a front end serves at this moment, until its command is submitted."""
        self.acting: Trip | None = None
        """Whose command is being handled and applied at this moment."""
        self._gathered: list[Trip] = []
        self._written: list[Trip] = []
        self._syncing: list[Trip] = []
        self._sync: Sync | None = None

    # ------------------------------------------------------------------------------ front ends

    def begin(self, received_ns: int = 0, parent: Parent | None = None) -> Trip | None:
        """Begin the trip of a request; ``None`` if it is not traced."""
        if parent is None:
            if self._random.random() * self._one_in >= 1.0:
                return None
        elif not parent.is_sampled:
            return None
        return self._begin(received_ns, None if parent is None else parent.span)

    def _begin(self, received_ns: int, parent: SpanId | None) -> Trip:
        now_ns = self.now_ns()
        received_ns = received_ns or now_ns
        trace = self._draw(128) if parent is None else parent.trace
        times_ns = [0] * _STAGES
        times_ns[Stage.RECEIVED] = received_ns
        wall_ns = self._wall_ns() - (now_ns - received_ns)
        return Trip(SpanId(trace, self._draw(64)), parent, wall_ns, times_ns)

    def finish(self, trip: Trip) -> None:
        """The response is written."""
        if not trip.times_ns[Stage.ANSWERED]:
            trip.times_ns[Stage.ANSWERED] = self.now_ns()
            self._sink(trip)

    def _draw(self, bits: int) -> int:
        """An id; 0 stands for none."""
        return self._random.getrandbits(bits) or 1

    # --------------------------------------------------------------------------------- runtime

    def follow(self, route: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
        """A route of commands, by which the trips of their requests are followed."""

        def submit(command: Any, reply: Any) -> None:
            trip = self._take(command)
            if trip is None:
                route(command, reply)
                return
            trip.note(Stage.SUBMITTED, self.now_ns())
            _describe(trip, command)
            outer, self.acting = self.acting, trip
            try:
                route(command, TripReply(self, trip, reply))
            finally:
                self.acting = outer

        return submit

    def _take(self, command: Any) -> Trip | None:
        """The trip that a command belongs to. Of several of one request, only the first has one."""
        trip, self.current = self.current, None
        if trip is not None:
            return trip
        call = CALL.get()
        match call:
            case Trip():
                return None if call.times_ns[Stage.SUBMITTED] else call
            case Stream() if _is_of_client(command):
                return self._begin_on(call, command)
            case _:
                return None

    def _begin_on(self, stream: Stream, command: Any) -> Trip | None:
        """Begin the trip of a message on a stream. How often is not for the client to say."""
        trip = self.begin()
        if trip is None:
            return None
        if stream.parent is not None and stream.parent.is_sampled:
            trip.parent = stream.parent.span
            trip.span = SpanId(trip.parent.trace, trip.span.span)
        trip.door, trip.name = Door.GRPC, stream.name
        trip.ends_with_reply = True
        return trip

    def note(self, stage: Stage) -> None:
        """The command that is being handled has passed a stage."""
        if self.acting is not None:
            self.acting.note(stage, self.now_ns())

    def note_gathered(self) -> None:
        """Records of the command that is being handled are gathered for the next write."""
        trip = self.acting
        if trip is not None:
            trip.note(Stage.APPENDED, self.now_ns())
            if not self._gathered or self._gathered[-1] is not trip:
                self._gathered.append(trip)

    def note_written(self) -> None:
        """What was gathered is written."""
        now_ns, gathered = self.now_ns(), self._gathered
        if gathered:
            self._gathered = []
            for trip in gathered:
                trip.note(Stage.WRITTEN, now_ns)
            self._written += gathered

    def begin_sync(self) -> None:
        """What was written is being synced."""
        self._syncing, self._written = self._written, []
        if not self._syncing:
            self._sync = None
            return
        span = SpanId(self._draw(128), self._draw(64))
        covers = [trip.span for trip in self._syncing[:COVERS_MAX]]
        self._sync = Sync(
            span, self._wall_ns(), self.now_ns(), covers=covers, requests=len(self._syncing)
        )

    def end_sync(self) -> None:
        """It is durable."""
        sync, self._sync = self._sync, None
        if sync is None:
            return
        sync.ended_ns = self.now_ns()
        syncing, self._syncing = self._syncing, []
        for trip in syncing:
            if not trip.times_ns[Stage.SYNCED]:
                trip.times_ns[Stage.SYNCED] = sync.ended_ns
                trip.sync = sync
        self._sink(sync)


class TripReply:
    """The reply of a traced command."""

    __slots__ = ("_reply", "_trips", "trip")

    def __init__(self, trips: Trips, trip: Trip, reply: Callable[[Any], None]) -> None:
        self._trips = trips
        self.trip = trip
        self._reply = reply

    def __call__(self, answer: Any) -> None:
        trip = self.trip
        trip.note(Stage.REPLIED, self._trips.now_ns())
        trip.error = trip.error or _find_error(answer)
        try:
            self._reply(answer)
        finally:
            if trip.ends_with_reply:
                self._trips.finish(trip)


def _describe(trip: Trip, command: Any) -> None:
    trip.group_id = trip.group_id or getattr(command, "group_id", "")[:TEXT_MAX]
    caller = getattr(command, "caller", None)
    if caller is not None:
        trip.client_id = trip.client_id or caller.client_id[:TEXT_MAX]


def _is_of_client(command: Any) -> bool:
    """Whether it is a message on a stream, and none of the server's own commands."""
    if isinstance(command, ConsumerGroupHeartbeat):
        return not command.by_server
    return isinstance(command, OffsetCommit)


def _find_error(answer: Any) -> str:
    """The name of the error code of an answer, or of a failure among its first partitions."""
    if isinstance(answer, GroupError):
        return answer.code.name
    if isinstance(answer, OffsetCommitResponse):
        rows = (row for topic in answer.topics for row in topic.partitions)
        for row in islice(rows, _ROWS_MAX):
            if row.error is not ErrorCode.NONE:
                return row.error.name
    return ""
