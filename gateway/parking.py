"""Heartbeats held back until there is news.

A parked heartbeat ends by news for its member, by the park time, by another request of its
connection (clients expect the answers of one connection in order), by the end of the connection
or of the server. At the end it is answered with the kept answer where that still holds, else with
what the coordinator says to the same command again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from coordinator.runtime.api import Watch
from gateway.clock import Clock
from model.commands import ClassicHeartbeat, ConsumerGroupHeartbeat

if TYPE_CHECKING:
    from gateway.api import Door, RequestContext
    from gateway.heartbeats import Heartbeats
    from gateway.steady import Steady

TICK_MS: Final = 20
SHORTEST_PARK_MS: Final = 2 * TICK_MS
"""A park shorter than this is not worth its watch."""


class Parked:
    """A heartbeat whose answer is held back.

    It has a ``context`` where it was decoded; a repeated one has only its kept answer and its
    correlation id, for it is mostly answered without either.
    """

    __slots__ = (
        "_command",
        "_context",
        "_correlation",
        "_door",
        "_heartbeats",
        "_is_done",
        "_steady",
        "_watch",
    )

    def __init__(
        self,
        heartbeats: Heartbeats,
        door: Door,
        command: ConsumerGroupHeartbeat | ClassicHeartbeat,
        steady: Steady | None,
        context: RequestContext | None,
        correlation: bytes,
    ) -> None:
        self._heartbeats = heartbeats
        self._door = door
        self._command = command
        self._steady = steady
        self._context = context
        self._correlation = correlation
        self._is_done = False
        self._watch: Watch | None = None

    def start(self, park_ms: int) -> None:
        """Wait; news that is there already ends the wait before this returns."""
        self._door.heartbeats.parked = self
        heartbeats, command = self._heartbeats, self._command
        watch = heartbeats.coordinator.watch(command.group_id, command.member_id, self._on_news)
        if not self._is_done:
            self._watch = watch
            heartbeats.ends.add(self, park_ms)

    def drop(self) -> None:
        """Stop waiting, without an answer."""
        self._is_done = True
        self._door.heartbeats.parked = None
        if self._watch is not None:
            self._watch.cancel()

    def end(self) -> None:
        """Answer now: the park time is over, or something else wants the connection."""
        if self._is_done:
            return
        self.drop()
        steady = self._steady
        if steady is None or not steady.ticket.is_valid():
            self._ask_again()
        elif self._context is None:
            self._heartbeats.tell_steady(self._door.heartbeats, steady)
            self._door.send_steady(steady, self._correlation)
        else:
            self._heartbeats.tell_steady(self._door.heartbeats, steady)
            self._context.reply_encoded(steady.tail[1:])

    def _on_news(self) -> None:
        if not self._is_done:
            self.drop()
            self._ask_again()

    def _ask_again(self) -> None:
        context, command = self._context, self._command
        assert isinstance(command, ConsumerGroupHeartbeat), "others are asked otherwise"
        if context is None:
            assert self._steady is not None
            context = self._door.reopen(self._steady, self._correlation)
        context.keep()
        self._heartbeats.submit(context, command, may_park=False)


class ParkEnds:
    """When parked heartbeats end: together, in ticks, a slice of them in one turn of the loop.

    One timer a tick in place of one a heartbeat, and answers that leave together come back
    together: half the work where a thousand members rest. Ends are early by up to a tick.
    """

    def __init__(self, clock: Clock, slice_size: int) -> None:
        self._clock = clock
        self._slice = slice_size
        self._ticks: dict[int, list[Parked]] = {}

    def add(self, parked: Parked, park_ms: int) -> None:
        """End this one in ``park_ms``."""
        now_ms = self._clock.time() * 1_000
        tick = int(now_ms + park_ms) // TICK_MS
        waiting = self._ticks.get(tick)
        if waiting is None:
            waiting = self._ticks[tick] = []
            delay_ms = max(0.0, tick * TICK_MS - now_ms)
            self._clock.call_later(delay_ms / 1_000, lambda: self._end(self._ticks.pop(tick)))
        waiting.append(parked)

    def _end(self, waiting: list[Parked]) -> None:
        for parked in waiting[: self._slice]:
            parked.end()
        rest = waiting[self._slice :]
        if rest:
            self._clock.call_later(0, lambda: self._end(rest))
