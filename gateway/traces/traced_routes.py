"""Routes that begin the trips of requests, and finish them when their response is written."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from coordinator.runtime.trips.trip import Stage, Trip
from coordinator.runtime.trips.trips import TEXT_MAX, Trips
from gateway.api import Handler, RequestContext, Route
from gateway.headers import Routes
from gateway.traces.traced_repeats import Told, WatchedRepeats
from model.errors import ErrorCode


class TracedRoutes(Routes):
    """The routes of a node, with decoders and handlers that note what they do.

    None is ``known``: each request is looked up.
    """

    def __init__(self, routes: Routes, trips: Trips) -> None:
        super().__init__((), 0)
        self._routes = routes
        self._trips = trips
        self._made: dict[bytes, Route] = {}
        self._received_ns = 0

    def find(self, key_and_version: bytes) -> Route | None:
        """See ``Routes``."""
        plain = self._routes.find(key_and_version)
        if plain is None:
            return None
        made = self._made.get(key_and_version)
        if made is None:
            made = self._made[key_and_version] = self._trace(plain)
        return made

    def knows(self, key: int) -> bool:
        """See ``Routes``."""
        return self._routes.knows(key)

    def _trace(self, route: Route) -> Route:
        now_ns = self._trips.now_ns

        def decode(data: bytes, pos: int, end: int) -> Any:
            self._received_ns = now_ns()
            return route.decode(data, pos, end)

        handler = partial(self._handle, route.api.handler)
        return replace(route, decode=decode, api=replace(route.api, handler=handler))

    def _handle(self, handler: Handler, context: RequestContext, request: Any) -> None:
        # A request that was decoded in slices begins here.
        received_ns, self._received_ns = self._received_ns, 0
        trips, group_id = self._trips, str(getattr(request, "group_id", ""))[:TEXT_MAX]
        self._watch_repeats(context, group_id)
        trip = trips.begin(received_ns)
        if trip is None:
            handler(context, request)
            return
        api = context.api
        trip.name, trip.key, trip.version = api.name, api.key, context.version
        trip.client_id, trip.group_id = context.caller.client_id[:TEXT_MAX], group_id
        trip.note(Stage.DECODED, trips.now_ns())
        route = context.route
        context.route = replace(
            route,
            encode=lambda response: route.encode(_note_error(trip, response)),
            pack_head=partial(self._finish, route, trip),
        )
        trips.current = trip
        try:
            handler(context, request)
        finally:
            trips.current = None

    def _watch_repeats(self, context: RequestContext, group_id: str) -> None:
        """What the connection will remember of this request is traced too."""
        repeats = context.client.repeats
        if not isinstance(repeats, WatchedRepeats):
            repeats = context.client.repeats = WatchedRepeats(self._trips, repeats)
        repeats.told[context.api.key] = Told(context.api.name, context.caller.client_id, group_id)

    def _finish(self, route: Route, trip: Trip, size: int, correlation: bytes) -> bytes:
        """Pack the head of a response, which is done when it is written."""
        self._trips.finish(trip)
        return route.pack_head(size, correlation)


def _note_error(trip: Trip, response: Any) -> Any:
    code = getattr(response, "error_code", 0)
    if code and not trip.error:
        trip.error = ErrorCode(code).name
    return response
