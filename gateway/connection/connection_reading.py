"""The reading half of a connection: flow control, deferred frames, and its deadlines."""

from __future__ import annotations

from typing import Final

from gateway.api import RequestContext
from gateway.connection.answering import Answering
from gateway.connection.arriving import Arriving
from gateway.connection.hang_ups import has_left
from gateway.connection.shared import Shared
from gateway.pace.cached_heartbeat import ConnectionHeartbeats

_WAITING_WEIGHT: Final = 1e-9


class Reading(Answering):
    """The layer of a ``Connection`` that decides how much is read and handled, and when."""

    __slots__ = (
        "_arriving",
        "_decoding_bytes",
        "_has_turn_coming",
        "_is_draining",
        "_is_first",
        "_settings",
        "heartbeats",
    )

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._settings = shared.node.settings
        self.heartbeats = ConnectionHeartbeats()
        self._arriving = Arriving(shared.held)
        self._is_first = True
        self._has_turn_coming = False
        self._decoding_bytes = 0
        self._is_draining = False

    def _serve(self, data: bytes, start: int) -> None:
        """Handle whole frames from ``start`` on, up to this iteration's limits; buffer the rest."""
        raise NotImplementedError

    def weigh_request(self, now: float) -> float:
        """Bytes of requests in progress, plus buffered bytes weighted by their age.

        Bytes that this server holds back, rather than the client, weigh next to nothing.
        """
        arriving = self._arriving.weigh(now) * (_WAITING_WEIGHT if self._is_held else 1)
        return self._made_bytes + self._decoding_bytes + arriving

    def _update_reading(self) -> None:
        """Pause reading while requests are held back, responses stall or the server drains."""
        if self.transport is None or self.transport.is_closing():
            return
        if self._is_held or self._is_draining or self._stalled_since is not None:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def _ask_for_a_turn(self) -> None:
        """Schedule the deferred frames for a later iteration, unless they still have to wait."""
        if not self._has_turn_coming and self._may_go_on():
            self._has_turn_coming = True
            self._shared.turns.add(self, is_single=self._arriving.is_single)

    def hold_back(self) -> None:
        """Read nothing until ``let_in``: the connection was made too soon."""
        self._is_held = True
        self._update_reading()

    def let_in(self) -> None:
        """Read from now on."""
        self._ask_for_a_turn()

    def _may_go_on(self) -> bool:
        settings = self._settings
        return (
            self._stalled_since is None
            and not self._decoding_bytes
            and len(self.unanswered) <= settings.gateway_pipelined_requests_max // 2
            and self._answer_bytes <= settings.gateway_response_buffer_bytes
            and self.making.is_over
        )

    def take_turn(self) -> None:
        """Handle the deferred frames, unless the client has gone or too many responses are due."""
        self._has_turn_coming = False
        transport = self.transport
        if transport is None or transport.is_closing() or self._is_draining:
            return
        if not self._arriving.is_few and has_left(transport):
            self.close()
        elif self._may_go_on():
            self._is_held = False
            if self._arriving.have:
                self._arriving.since = None
                self._serve(self._arriving.take(), self._arriving.done)
            self._update_reading()

    def drain(self) -> None:
        """Stop reading, and answer waiting requests now: heartbeats, fetches, joins and syncs."""
        self._is_draining = True
        self._update_reading()
        for context in tuple(self.unanswered):
            if isinstance(context, RequestContext):
                context.drain()
        if self.heartbeats.parked is not None:
            self.heartbeats.parked.end()

    @property
    def is_parked(self) -> bool:
        return self.heartbeats.parked is not None

    @property
    def is_idle(self) -> bool:
        """Whether every request is answered."""
        is_waiting = self._decoding_bytes > 0 or self.heartbeats.parked is not None
        return not self.unanswered and not is_waiting

    def compute_idle_since(self) -> tuple[bool, float] | None:
        """Whether the client ever sent a byte, and when it last did; ``None`` if it is busy."""
        is_busy = (
            self._is_held
            or self.unanswered
            or self.heartbeats.parked is not None
            or self._arriving.have
        )
        return None if is_busy else (not self._is_first, self._heard_at)

    def check_deadlines(self, now: float) -> None:
        """Close the connection if it is idle, or if its client sends or reads too slowly."""
        settings = self._settings
        idle_s = settings.connections_max_idle_ms / 1_000
        stall_s = settings.gateway_response_stall_timeout_ms / 1_000
        if self._stalled_since is not None:
            if now - self._stalled_since > stall_s:
                self.refuse("slow-reader", f"the client read no response for {stall_s:g} s")
        elif (since := self._arriving.since) is not None and not self._is_held:
            have, need = self._arriving.have, self._arriving.need
            allowed_s = settings.gateway_request_read_timeout_ms / 1_000 + need / 2**20
            if now - since > allowed_s:
                self.refuse("slow-sender", f"received {have} of {need} bytes in {allowed_s:g} s")
        elif self.is_idle and now - self._heard_at > idle_s:
            self._shared.refusals.refuse("idle", self._peer, f"no request for {idle_s:g} s")
            self.close()
