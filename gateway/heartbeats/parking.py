"""Heartbeats held back until there is news.

A parked heartbeat ends by news for its member, by the park time, by another request of its
connection (clients expect the answers of one connection in order), by anything that the member
says elsewhere, by the end of the connection or of the server. At the end it is answered with the
kept answer where that still holds, else with what the coordinator says when it is asked again.

The server asks in its own name then. What the client said when it sent the heartbeat (what it owns,
what it subscribes to) may not be so any more, and what is not said now acknowledges nothing; nor
is the client alive because the server asks. A client that went on over another connection is not
asked for at all: its old heartbeat gets the answer that was found when it came, as if the network
had been slow with it, and what is new is for the connection that the client has now.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable
from typing import Final, Protocol

from coordinator.runtime.api import Coordinator, Watch
from gateway.api import Door, RequestContext
from gateway.pace.round_trip import RecentDelay
from gateway.pace.steady import HEARTBEAT_KEY, ConnectionHeartbeats, Member, Steady
from gateway.settings import GatewaySettings
from gateway.wire_clock import Clock
from model.commands import ClassicHeartbeat, ConsumerGroupHeartbeat
from model.responses import ConsumerGroupHeartbeatResponse

logger = logging.getLogger("muster.gateway")

_ROUTE: Final = struct.Struct(">hh")
TICK_MS: Final = 20
SHORTEST_PARK_MS: Final = 2 * TICK_MS
"""A park shorter than this is not worth its watch."""


class Parking(Protocol):
    """What parks heartbeats and answers them (``gateway.heartbeats.heartbeats``)."""

    coordinator: Coordinator
    clock: Clock
    settings: GatewaySettings
    ends: ParkEnds
    is_draining: bool

    def compute_gap_ms(self, connection: ConnectionHeartbeats) -> int:
        """How long before its interval ends a client of the connection is to be answered."""

    def reply(
        self, context: RequestContext, member: Member, answer: ConsumerGroupHeartbeatResponse
    ) -> None:
        """Answer a heartbeat."""

    def ask_again(self, context: RequestContext, command: ConsumerGroupHeartbeat) -> None:
        """Answer a heartbeat with what the coordinator says now."""

    def tell_steady(self, connection: ConnectionHeartbeats, steady: Steady) -> None:
        """Put the interval to be told now into a kept answer."""


class Parked:
    """A request whose answer is held back. ``command`` is what is asked at its end."""

    __slots__ = ("_command", "_door", "_heartbeats", "_is_done", "_watch")

    def __init__(
        self,
        heartbeats: Parking,
        door: Door,
        command: ConsumerGroupHeartbeat | ClassicHeartbeat,
    ) -> None:
        assert command.by_server, "what the client said is not said again"
        self._heartbeats = heartbeats
        self._door = door
        self._command = command
        self._is_done = False
        self._watch: Watch | None = None

    def start(self, park_ms: int) -> None:
        """Wait; news that is there already ends the wait before this returns."""
        self._door.heartbeats.parked = self
        heartbeats, command = self._heartbeats, self._command
        watch = heartbeats.coordinator.watch(
            command.group_id, command.member_id, self._on_news, on_dropped=self.supersede
        )
        if not self._is_done:
            self._watch = watch
            heartbeats.ends.add(self, park_ms)

    def drop(self) -> None:
        """Stop waiting, without an answer."""
        self._is_done = True
        self._door.heartbeats.parked = None
        # The watch refers to this: kept, it would be a cycle, which only the collector ends.
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.cancel()

    def end(self) -> None:
        """Answer now: the park time is over, or something else wants the connection."""
        if self._is_done:
            return
        self.drop()
        self._guard(self._answer_as_found if self._is_as_found() else self._ask_again)

    def supersede(self) -> None:
        """The member was heard elsewhere: answer what was found when this came, and ask nothing."""
        if not self._is_done:
            self.drop()
            self._guard(self._answer_as_found)

    def _on_news(self) -> None:
        if not self._is_done:
            self.drop()
            self._guard(self._ask_again)

    def _guard(self, answer: Callable[[], None]) -> None:
        """Parks of many connections end in one go: a bug in one must reach no other."""
        try:
            answer()
        except Exception as error:  # noqa: BLE001 - told the client that waits for this answer
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        raise NotImplementedError

    def _is_as_found(self) -> bool:
        """Whether what was found when it came is known to hold still."""
        raise NotImplementedError

    def _answer_as_found(self) -> None:
        raise NotImplementedError

    def _ask_again(self) -> None:
        raise NotImplementedError


class ParkedHeartbeat(Parked):
    """A heartbeat that was decoded, and the answer that is held back."""

    __slots__ = ("_answer", "_context", "_member", "_steady")

    def __init__(
        self,
        heartbeats: Parking,
        context: RequestContext,
        command: ConsumerGroupHeartbeat,
        member: Member,
        answer: ConsumerGroupHeartbeatResponse,
        steady: Steady | None,
    ) -> None:
        super().__init__(heartbeats, context.door, command)
        self._context = context
        self._member = member
        self._answer = answer
        self._steady = steady

    def _is_as_found(self) -> bool:
        return self._steady is not None and self._steady.ticket.is_valid()

    def _answer_as_found(self) -> None:
        self._context.keep()
        self._heartbeats.reply(self._context, self._member, self._answer)

    def _fail(self, error: Exception) -> None:
        self._door.fail(self._context, error)

    def _ask_again(self) -> None:
        assert isinstance(self._command, ConsumerGroupHeartbeat)
        self._context.keep()
        self._heartbeats.ask_again(self._context, self._command)


class ParkedSteady(Parked):
    """A repeated heartbeat: it was not decoded, and mostly need not be to be answered."""

    __slots__ = ("_correlation", "_steady")

    def __init__(self, heartbeats: Parking, door: Door, steady: Steady, correlation: bytes) -> None:
        assert steady.command is not None
        super().__init__(heartbeats, door, steady.command)
        self._steady = steady
        self._correlation = correlation

    def _is_as_found(self) -> bool:
        return self._steady.ticket.is_valid()

    def _answer_as_found(self) -> None:
        self._heartbeats.tell_steady(self._door.heartbeats, self._steady)
        self._door.send(self._steady.make_frame(self._correlation))

    def _ask_again(self) -> None:
        assert self._steady.command is not None
        context = reopen(self._door, self._steady, self._correlation)
        self._heartbeats.ask_again(context, self._steady.command)

    def _fail(self, error: Exception) -> None:
        # There may be no context to answer in: the client asks again over another connection.
        logger.error("ending_park_failed", exc_info=error)
        self._door.close()


def reopen(door: Door, steady: Steady, correlation: bytes) -> RequestContext:
    """A context for a repeated heartbeat, whose answer takes its place after all before it."""
    route = _ROUTE.pack(HEARTBEAT_KEY, steady.version)
    return door.reopen(route, correlation, steady.caller, steady.member.steady_bytes)


def make_asked_again(
    command: ConsumerGroupHeartbeat, answer: ConsumerGroupHeartbeatResponse
) -> ConsumerGroupHeartbeat:
    """What the server asks by itself for a heartbeat that it parks, whose answer was this.

    It brings the assignment where that answer has it: the client asked for it.
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
    """Whether the answer's assignment, if it has one, is what the client says that it owns.

    Otherwise the answer that brought the assignment was lost, and this one is awaited.
    """
    if answer.assignment is None:
        return True
    owned = command.owned
    # A client may say very much that it does not own.
    return (
        owned is not None
        and len(owned) == len(answer.assignment)
        and set(owned) == set(answer.assignment)
    )


class ParkEnds:
    """When parked heartbeats end: together, in ticks, a slice of them in one turn of the loop.

    One timer a tick in place of one a heartbeat, and answers that leave together come back
    together: half the work where a thousand members rest. Ends are early by up to a tick.
    """

    def __init__(self, clock: Clock, slice_size: int, delay: RecentDelay) -> None:
        """``delay`` is told how late ends come."""
        self._clock = clock
        self._slice = slice_size
        self._delay = delay
        self._ticks: dict[int, list[Parked]] = {}

    def add(self, parked: Parked, park_ms: int) -> None:
        """End this one in ``park_ms``."""
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
