"""Requests that repeat an earlier one, traced without decoding them either."""

from __future__ import annotations

from typing import NamedTuple

from coordinator.runtime.trips.trip import Stage, Trip
from coordinator.runtime.trips.trips import TEXT_MAX, Trips
from gateway.api import ClientConnection, Repeats
from gateway.pending import Pending


class Told(NamedTuple):
    """What the last decoded request of an API has told."""

    name: str
    client_id: str
    group_id: str


class WatchedRepeats(dict[int, Repeats]):
    """What a connection keeps to serve repeated requests, each kept with its trips."""

    def __init__(self, trips: Trips, kept: dict[int, Repeats]) -> None:
        super().__init__()
        self._trips = trips
        self.told: dict[int, Told] = {}
        for key, repeats in kept.items():
            self[key] = repeats

    def __setitem__(self, key: int, repeats: Repeats) -> None:
        told = self.told.get(key, Told("", "", ""))
        super().__setitem__(key, TracedRepeats(repeats, self._trips, key, told))


class TracedRepeats:
    """Serves what ``Repeats`` serves, and follows some of it."""

    def __init__(self, repeats: Repeats, trips: Trips, key: int, told: Told) -> None:
        self._repeats = repeats
        self._trips = trips
        self._key = key
        self._told = told

    def serve(self, client: ClientConnection, frame: bytes, now: float) -> bytes | Pending | None:
        """See ``Repeats``. A trip of a frame that has to be decoded begins there instead."""
        trips = self._trips
        trip = trips.begin()
        if trip is None:
            return self._repeats.serve(client, frame, now)
        self._describe(trip, frame)
        trips.acting = trip
        try:
            answer = self._repeats.serve(client, frame, now)
        finally:
            trips.acting = None
        if answer is None:
            return None
        if isinstance(answer, bytes):
            if answer:  # Else it is parked, or answered in another way.
                trips.finish(trip)
            return answer
        return TracedPending(answer, trips, trip)

    def _describe(self, trip: Trip, frame: bytes) -> None:
        trip.key, trip.version = self._key, int.from_bytes(frame[6:8], "big")
        trip.name = self._told.name
        trip.client_id, trip.group_id = self._told.client_id[:TEXT_MAX], self._told.group_id
        trip.is_repeated = True
        trip.note(Stage.HANDLING, trip.times_ns[Stage.RECEIVED])


class TracedPending(Pending):
    """A pending request; its connection asks for its frame when it writes it."""

    def __init__(self, pending: Pending, trips: Trips, trip: Trip) -> None:
        self._pending = pending
        self._trips = trips
        self._trip = trip
        self.began_s = 0.0
        self.key = pending.key

    @property
    def answered(self) -> bool:  # type: ignore[override]  # its connection only reads it
        """See ``Pending``."""
        return self._pending.answered

    @property
    def frame(self) -> bytes:  # type: ignore[override]  # ditto
        """See ``Pending``."""
        self._trips.finish(self._trip)
        return self._pending.frame

    def abandon(self) -> None:
        """See ``Pending``."""
        self._pending.abandon()
