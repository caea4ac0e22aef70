"""When a connection is read, when its frames have a turn, and when it is closed for its pace."""

from __future__ import annotations

from typing import Final

from gateway.api import RequestContext
from gateway.connection.answering import Answering
from gateway.connection.arriving import Arriving
from gateway.connection.hang_ups import has_left
from gateway.connection.shared import Shared
from gateway.pace.steady import ConnectionHeartbeats

_WAITING_WEIGHT: Final = 1e-9


class Reading(Answering):
    """The layer of a ``Connection`` that decides how much of it is taken, and when."""

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
        """Handle the whole frames from ``start`` on, as many as may be now; keep what is left."""
        raise NotImplementedError

    def weigh_request(self, now: float) -> float:
        """What is decoded and not answered, and how much of a request is there for how long.

        Bytes that wait for us are next to nothing.
        """
        arriving = self._arriving.weigh(now) * (_WAITING_WEIGHT if self._is_held else 1)
        return self._made_bytes + self._decoding_bytes + arriving

    def _update_reading(self) -> None:
        """Read while few answers are outstanding and the client takes those there are."""
        if self.transport is None or self.transport.is_closing():
            return
        if self._is_held or self._is_draining or self._stalled_since is not None:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def _ask_for_a_turn(self) -> None:
        """Go on with the frames that had to wait, in a later turn; not if they still have to."""
        if not self._has_turn_coming and self._may_go_on():
            self._has_turn_coming = True
            self._shared.turns.add(self, is_single=self._arriving.is_single)

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
        """Go on, unless the client has gone or is owed too much by now."""
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
        """Read no more, and answer now what waits: heartbeats, fetches, joins and syncs."""
        self._is_draining = True
        self._update_reading()
        for context in tuple(self.unanswered):
            if isinstance(context, RequestContext):
                context.drain()
        if self.heartbeats.parked is not None:
            self.heartbeats.parked.end()

    @property
    def is_idle(self) -> bool:
        """Whether every request was answered."""
        is_waiting = self._decoding_bytes > 0 or self.heartbeats.parked is not None
        return not self.unanswered and not is_waiting

    def compute_idle_since(self) -> tuple[bool, float] | None:
        """Whether it has ever sent anything, and when it was heard; ``None`` where it is busy."""
        is_busy = (
            self._is_held
            or self.unanswered
            or self.heartbeats.parked is not None
            or self._arriving.have
        )
        return None if is_busy else (not self._is_first, self._heard_at)

    def check_deadlines(self, now: float) -> None:
        """Close a connection that is idle, or too slow in sending or in reading."""
        settings = self._settings
        idle_s = settings.connections_max_idle_ms / 1_000
        stall_s = settings.gateway_response_stall_timeout_ms / 1_000
        if self._stalled_since is not None:
            if now - self._stalled_since > stall_s:
                self.refuse("slow-reader", f"it read no answer for {stall_s:g} s")
        elif (since := self._arriving.since) is not None and not self._is_held:
            have, need = self._arriving.have, self._arriving.need
            allowed_s = settings.gateway_request_read_timeout_ms / 1_000 + need / 2**20
            if now - since > allowed_s:
                self.refuse("slow-sender", f"{have} of {need} bytes in {allowed_s:g} s")
        elif self.is_idle and now - self._heard_at > idle_s:
            self._shared.refusals.refuse("idle", self._peer, f"nothing came for {idle_s:g} s")
            self.close()
