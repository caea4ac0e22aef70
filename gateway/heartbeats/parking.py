"""Parked heartbeats: responses held back until there is a change to send.

A park ends with a pending change for the member, after the park time, with another request on the
connection (clients expect a connection's responses in order), with a request of the member on
another connection, and when the server stops. The heartbeat is then answered with the cached
response if that is still valid, else with the coordinator's answer to a new command. A lost
connection ends the park without a response.

The server submits that command in its own name (``by_server``). What the client reported when it
sent the heartbeat (owned partitions, subscription) may be outdated, so the command repeats none of
it and acknowledges nothing; nor does it prove that the client is alive. If the client has moved to
another connection, no command is submitted: the old heartbeat gets the response computed when it
arrived, as if the network had been slow, and a change is for the new connection.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable
from typing import Final, Protocol

from coordinator.runtime.api import Coordinator, Watch
from gateway.api import ClientConnection, RequestContext
from gateway.pace.cached_heartbeat import (
    HEARTBEAT_KEY,
    CachedHeartbeat,
    ConnectionHeartbeats,
    Member,
)
from gateway.pace.round_trip import RecentDelay
from gateway.settings import GatewaySettings
from gateway.wire_clock import Clock
from model.commands.classic import ClassicHeartbeat
from model.commands.consumer import ConsumerGroupHeartbeat
from model.responses.consumer import ConsumerGroupHeartbeatResponse

logger = logging.getLogger("muster.gateway")

_ROUTE: Final = struct.Struct(">hh")
TICK_MS: Final = 20
SHORTEST_PARK_MS: Final = 2 * TICK_MS
"""A shorter park is not worth its watch."""


class Parking(Protocol):
    """The heartbeat handler, as parked requests see it (``gateway.heartbeats.heartbeats``)."""

    coordinator: Coordinator
    clock: Clock
    settings: GatewaySettings
    ends: ParkEnds
    is_draining: bool

    def compute_gap_ms(self, connection: ConnectionHeartbeats) -> int:
        """How long before its interval ends a client of the connection must be answered."""

    def reply(
        self, context: RequestContext, member: Member, answer: ConsumerGroupHeartbeatResponse
    ) -> None:
        """Answer a heartbeat."""

    def ask_again(self, context: RequestContext, command: ConsumerGroupHeartbeat) -> None:
        """Submit ``command`` for a heartbeat whose park has ended, and send that answer."""

    def allows(self, cached: CachedHeartbeat) -> bool:
        """Whether no ACL has changed; the first heartbeat after a change is decoded again."""

    def update_cached(self, connection: ConnectionHeartbeats, cached: CachedHeartbeat) -> None:
        """Set the interval that is due now in a cached response."""


class Parked:
    """A request whose response is held back; ``command`` is submitted when the park ends."""

    __slots__ = ("_client", "_command", "_heartbeats", "_is_done", "_watch")

    def __init__(
        self,
        heartbeats: Parking,
        client: ClientConnection,
        command: ConsumerGroupHeartbeat | ClassicHeartbeat,
    ) -> None:
        assert command.by_server, "a park must not repeat what the client reported"
        self._heartbeats = heartbeats
        self._client = client
        self._command = command
        self._is_done = False
        self._watch: Watch | None = None

    def start(self, park_ms: int) -> None:
        """Start waiting; a change that is pending already ends the park before this returns."""
        self._client.heartbeats.parked = self
        heartbeats, command = self._heartbeats, self._command
        watch = heartbeats.coordinator.watch(
            command.group_id, command.member_id, self._on_change, on_dropped=self.supersede
        )
        if not self._is_done:
            self._watch = watch
            heartbeats.ends.add(self, park_ms)

    def drop(self) -> None:
        """Stop waiting, without an answer."""
        self._is_done = True
        self._client.heartbeats.parked = None
        # The watch refers to this object: keeping it would make a reference cycle.
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.cancel()

    def end(self) -> None:
        """Answer now: the park time is over, or another request needs the connection."""
        if self._is_done:
            return
        self.drop()
        self._guard(self._answer_as_found if self._is_as_found() else self._ask_again)

    def supersede(self) -> None:
        """Answer with the original response: the member has moved to another connection."""
        if not self._is_done:
            self.drop()
            self._guard(self._answer_as_found)

    def _on_change(self) -> None:
        if not self._is_done:
            self.drop()
            self._guard(self._ask_again)

    def _guard(self, answer: Callable[[], None]) -> None:
        """Contain exceptions: parks of many connections end in one call, and must all end."""
        try:
            answer()
        except Exception as error:  # noqa: BLE001 - fails this request alone
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        raise NotImplementedError

    def _is_as_found(self) -> bool:
        """Whether the response computed on arrival is known to be still valid."""
        raise NotImplementedError

    def _is_current(self, cached: CachedHeartbeat) -> bool:
        return cached.ticket.is_valid() and self._heartbeats.allows(cached)

    def _answer_as_found(self) -> None:
        raise NotImplementedError

    def _ask_again(self) -> None:
        raise NotImplementedError


class ParkedHeartbeat(Parked):
    """A parked heartbeat that was decoded, with its original answer."""

    __slots__ = ("_answer", "_cached", "_context", "_member")

    def __init__(
        self,
        heartbeats: Parking,
        context: RequestContext,
        command: ConsumerGroupHeartbeat,
        member: Member,
        answer: ConsumerGroupHeartbeatResponse,
        cached: CachedHeartbeat | None,
    ) -> None:
        super().__init__(heartbeats, context.client, command)
        self._context = context
        self._member = member
        self._answer = answer
        self._cached = cached

    def _is_as_found(self) -> bool:
        cached = self._cached
        return cached is not None and self._is_current(cached)

    def _answer_as_found(self) -> None:
        self._context.keep()
        self._heartbeats.reply(self._context, self._member, self._answer)

    def _fail(self, error: Exception) -> None:
        self._client.fail(self._context, error)

    def _ask_again(self) -> None:
        assert isinstance(self._command, ConsumerGroupHeartbeat)
        self._context.keep()
        self._heartbeats.ask_again(self._context, self._command)


class ParkedCachedHeartbeat(Parked):
    """A parked repeat of a cached heartbeat; it is not decoded, and rarely needs a context."""

    __slots__ = ("_cached", "_correlation")

    def __init__(
        self,
        heartbeats: Parking,
        client: ClientConnection,
        cached: CachedHeartbeat,
        correlation: bytes,
    ) -> None:
        assert cached.command is not None
        super().__init__(heartbeats, client, cached.command)
        self._cached = cached
        self._correlation = correlation

    def _is_as_found(self) -> bool:
        return self._is_current(self._cached)

    def _answer_as_found(self) -> None:
        self._heartbeats.update_cached(self._client.heartbeats, self._cached)
        self._client.send(self._cached.make_frame(self._correlation))

    def _ask_again(self) -> None:
        assert self._cached.command is not None
        context = reopen(self._client, self._cached, self._correlation)
        self._heartbeats.ask_again(context, self._cached.command)

    def _fail(self, error: Exception) -> None:
        # There may be no context to answer in: close, and the client retries on a new connection.
        logger.error("ending_park_failed", exc_info=error)
        self._client.close()


def reopen(client: ClientConnection, cached: CachedHeartbeat, correlation: bytes) -> RequestContext:
    """Make a context for a repeated heartbeat and queue it behind the unanswered requests."""
    route = _ROUTE.pack(HEARTBEAT_KEY, cached.version)
    return client.reopen(route, correlation, cached.caller, cached.member.cached_bytes)


def make_asked_again(
    command: ConsumerGroupHeartbeat, answer: ConsumerGroupHeartbeatResponse
) -> ConsumerGroupHeartbeat:
    """The command that the server submits when the park of ``command`` ends.

    It asks for the assignment if ``answer`` has one: the client asked for it.
    """
    return ConsumerGroupHeartbeat(
        command.caller,
        command.group_id,
        command.member_id,
        command.member_epoch,
        instance_id=command.instance_id,
        wants_assignment=answer.assignment is not None,
        by_server=True,
    )


def repeats_owned(command: ConsumerGroupHeartbeat, answer: ConsumerGroupHeartbeatResponse) -> bool:
    """Whether the answer's assignment, if any, equals the partitions that the client owns.

    If not, an earlier response with the assignment was lost and the client needs this one now.
    """
    if answer.assignment is None:
        return True
    owned = command.owned
    # Compare lengths first: a client may claim a huge list of partitions.
    return (
        owned is not None
        and len(owned) == len(answer.assignment)
        and set(owned) == set(answer.assignment)
    )


class ParkEnds:
    """Ends parks in ticks, with at most ``slice_size`` of them per event-loop iteration.

    This needs one timer per tick instead of one per heartbeat, and clients answered together send
    their next heartbeats together, which halves the work for a thousand resting members. A park
    ends up to a tick early.
    """

    def __init__(self, clock: Clock, slice_size: int, delay: RecentDelay) -> None:
        """``delay`` records how late parks end."""
        self._clock = clock
        self._slice = slice_size
        self._delay = delay
        self._ticks: dict[int, list[Parked]] = {}

    def add(self, parked: Parked, park_ms: int) -> None:
        """End ``parked`` in ``park_ms``."""
        now_ms = self._clock.time() * 1_000
        tick = int(now_ms + park_ms) // TICK_MS
        waiting = self._ticks.get(tick)
        if waiting is None:
            waiting = self._ticks[tick] = []
            delay_ms = max(0.0, tick * TICK_MS - now_ms)
            self._clock.call_later(delay_ms / 1_000, lambda: self._end_tick(tick))
        waiting.append(parked)

    def _end_tick(self, tick: int) -> None:
        now = self._clock.time()
        self._delay.note(now * 1_000 - tick * TICK_MS, now)
        self._end(self._ticks.pop(tick))

    def _end(self, waiting: list[Parked]) -> None:
        # Not work of ``Slices``: ticks come whether or not those before them have ended, and with
        # one slice in a turn for all of them the ends would fall behind for good.
        for parked in waiting[: self._slice]:
            parked.end()
        rest = waiting[self._slice :]
        if rest:
            self._clock.call_later(0, lambda: self._end(rest))
