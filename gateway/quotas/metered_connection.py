"""A connection whose client has quotas: counted, throttled and muted.

As in Kafka, a request over a quota is served, its response has the throttle time, and the
connection is not read for that time. What waits (a held heartbeat, a join) counts when it arrives.

Connections are plain ones until there is a quota that looks at requests, and again when there is
none: ``meter`` and ``stop_metering`` change the class of a live connection, so that plain ones pay
nothing for any of this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeAlias

from gateway.api import RequestContext, Route
from gateway.connection.connection import Connection
from gateway.connection.sasl_connection import SaslConnection
from gateway.headers import FIXED_BYTES
from gateway.quotas.metered_slices import MeteredSlices
from gateway.quotas.throttle_field import set_throttle_ms
from gateway.quotas.wire_work import OFFSET_COMMIT, find_held, find_work
from gateway.sasl.exchange import HANDSHAKE_KEY
from model.caller import Caller
from model.errors import GroupError
from security.quotas.client_quotas import ClientMeter, ClientQuotas, Work
from security.quotas.holdings import Held

DOOR: Final = "kafka"
_EARLY_S: Final = 0.001
"""Timers may fire early by so much."""

_Early: TypeAlias = list[tuple[RequestContext, bytes | None]]


class MeteredConnection(Connection):
    """A connection that notes what its client uses, and mutes it."""

    # Its layout is that of ``Connection``, which it becomes: see ``meter``.

    _quotas: ClientQuotas
    _meter: ClientMeter | None
    _metered: Caller | None
    _muted_until: float
    _is_waking: bool
    _is_noted: bool
    _began: float
    _early: _Early | None

    def begin_metering(self, quotas: ClientQuotas) -> None:
        """Set what a plain connection does not have."""
        self._quotas = quotas
        self._meter = self._metered = self._early = None
        self._muted_until = self._began = 0.0
        self._is_waking = self._is_noted = False
        node = self._shared.node
        slices = MeteredSlices(node.slices, self._shared.turns.now, partial(_note_slice, self))
        self._node = replace(node, slices=slices)

    @property
    def is_muted(self) -> bool:
        """Whether the client is throttled now."""
        return self._muted_until > self._time() + _EARLY_S

    def connection_lost(self, exc: Exception | None) -> None:
        """See ``Connection``; what the client has used is kept for its next connection."""
        if self._metered is not None:
            self._quotas.find_meter(self._metered, self._time())
        super().connection_lost(exc)

    # ----------------------------------------------------------------------------- requests

    def _serve_repeated(self, frame: bytes) -> bool:
        """See ``Connection``; over a quota a frame is decoded, as its response has to say so."""
        if len(frame) <= FIXED_BYTES or frame[5] not in self.repeats:
            return False
        now = self._time()
        meter = self._find_meter(now)
        if not meter.has_rates:
            return super()._serve_repeated(frame)
        if not self._is_noted:
            # Whoever serves the frame after this must not note it again.
            self._is_noted = True
            self._throttle(meter.note(_find_repeated_work(frame), now))
        if self.is_muted:
            return False
        began = self._shared.turns.now()
        if not super()._serve_repeated(frame):
            return False
        self._is_noted = False
        meter.note_time(now, self._shared.turns.now() - began)
        return True

    def _serve_request(self, data: bytes, pos: int, end: int) -> bool:
        self._began = self._shared.turns.now()
        try:
            return super()._serve_request(data, pos, end)
        finally:
            self._began = 0.0

    def _handle(
        self, route: Route, correlation: bytes, request: Any, raw: bytes, *, is_long: bool = False
    ) -> None:
        now = self._time()
        meter = self._find_meter(now)
        began = self._began or self._shared.turns.now()
        if not self._is_noted:
            self._throttle(meter.note(find_work(route.api.key, request), now))
        self._is_noted = False
        refusal = self._find_refusal(route.api.key, request, meter, now)
        if refusal is not None:
            refuse = partial(_refuse, refusal)
            route = replace(route, api=replace(route.api, handler=refuse))
        early = self._early = []
        try:
            super()._handle(route, correlation, request, raw, is_long=is_long)
        finally:
            self._early = None
        if not is_long:
            # A long request is handled in a slice, whose time is noted there.
            self._throttle(meter.note_time(now, self._shared.turns.now() - began))
        for context, body in early:
            self.deliver(context, body)

    def _find_refusal(
        self, key: int, request: Any, meter: ClientMeter, now: float
    ) -> GroupError | None:
        """Why the client may not make the group or the member of this request."""
        spoken = find_held(key, request) if meter.has_most else None
        if spoken is None:
            return None
        quotas, caller = self._quotas, self._caller
        if not spoken.may_make:
            quotas.observe_held(caller, meter, spoken.held, self._is_there, now)
            return None
        try:
            quotas.check_held(caller, meter, spoken.held, self._is_there, now)
        except GroupError as error:
            return error
        return None

    def _is_there(self, held: Held) -> bool:
        coordinator = self._node.coordinator
        if held.member_id is None:
            return coordinator.holds_group(held.group_id)
        return coordinator.holds_member(held.group_id, held.member_id)

    def _find_meter(self, now: float) -> ClientMeter:
        meter = self._meter
        if (
            meter is None
            or meter.version != self._quotas.index.version
            or self._metered is not self._caller
        ):
            self._metered = self._caller
            meter = self._meter = self._quotas.find_meter(self._caller, now)
        return meter

    # ----------------------------------------------------------------------------- responses

    def deliver(self, context: RequestContext, body: bytes | None) -> None:
        """Send a response, with the time for which the connection is still muted.

        While a request is handled its response waits: the time that it takes counts too.
        """
        if self._early is not None:
            self._early.append((context, body))
            return
        if body is not None and self.is_muted:
            throttle_ms = round((self._muted_until - self._time()) * 1_000)
            body = set_throttle_ms(context.api.key, context.version, body, throttle_ms)
        super().deliver(context, body)

    def close(self) -> None:
        """See ``Connection``; the response of the request that ends it goes first."""
        early, self._early = self._early, None
        if early:
            responses = tuple(early)
            early.clear()
            for context, body in responses:
                self.deliver(context, body)
        super().close()

    # ------------------------------------------------------------------------------- muting

    def _throttle(self, seconds: float) -> None:
        """Do not read for this long; what has been read is served then."""
        until = self._time() + seconds
        if seconds <= 0 or until <= self._muted_until:
            return
        self._quotas.note_throttled(DOOR, min(seconds, until - self._muted_until))
        self._muted_until = until
        self._is_held = True
        self._wake_later()

    def _wake_later(self) -> None:
        if not self._is_waking:
            self._is_waking = True
            left_s = self._muted_until - self._time()
            self._node.clock.call_later(left_s, partial(_wake, self))

    def wake(self) -> None:
        """Serve what has been read, if the client is not muted any more."""
        self._is_waking = False
        if self.transport is None:
            return
        if self.is_muted:
            self._wake_later()
        elif self._is_held:
            self._ask_for_a_turn()

    def _may_go_on(self) -> bool:
        return not self.is_muted and super()._may_go_on()

    def note_slice(self, seconds: float) -> None:
        """Note the time of a slice of work that a request has begun."""
        now = self._time()
        self._throttle(self._find_meter(now).note_time(now, seconds))
        if self._is_held:
            self._update_reading()

    def end_metering(self) -> None:
        """Go on as if the client had never been muted."""
        self._node = self._shared.node
        self._muted_until = 0.0
        if self._is_held:
            self._ask_for_a_turn()


class MeteredSaslConnection(MeteredConnection, SaslConnection):
    """The same on a listener whose clients authenticate by SASL.

    As in Kafka, what a client sends to authenticate counts for nobody. A client id alone shows
    nobody, and nobody's quota is not that of all who are about to authenticate: a flood of wrong
    passwords would throttle every login.
    """

    def _handle(
        self, route: Route, correlation: bytes, request: Any, raw: bytes, *, is_long: bool = False
    ) -> None:
        if self._exchange.is_done and route.api.key != HANDSHAKE_KEY:
            super()._handle(route, correlation, request, raw, is_long=is_long)
        else:
            SaslConnection._handle(self, route, correlation, request, raw, is_long=is_long)

    def note_slice(self, seconds: float) -> None:
        """See ``MeteredConnection``."""
        if self._exchange.is_done:
            super().note_slice(seconds)


_METERED: Final[Mapping[type[Connection], type[MeteredConnection]]] = {
    Connection: MeteredConnection,
    SaslConnection: MeteredSaslConnection,
}
_PLAIN: Final = {metered: plain for plain, metered in _METERED.items()}


def meter(connection: Connection, quotas: ClientQuotas) -> None:
    """Meter a live connection from now on."""
    metered = _METERED.get(type(connection))
    if metered is not None:
        connection.__class__ = metered
        assert isinstance(connection, MeteredConnection)
        connection.begin_metering(quotas)


def stop_metering(connection: Connection) -> None:
    """Make of it again what it was, whose client is not muted."""
    if isinstance(connection, MeteredConnection):
        connection.end_metering()
        plain: Connection = connection
        plain.__class__ = _PLAIN[type(connection)]


def _wake(connection: Connection) -> None:
    if isinstance(connection, MeteredConnection):
        connection.wake()


def _note_slice(connection: Connection, seconds: float) -> None:
    if isinstance(connection, MeteredConnection):
        connection.note_slice(seconds)


def _find_repeated_work(frame: bytes) -> Work:
    return Work.COMMIT if frame[5] == OFFSET_COMMIT else Work.REQUEST


def _refuse(refusal: GroupError, context: RequestContext, request: Any) -> None:
    context.reply_failed(refusal.code, refusal.message)
