"""The unfinished TLS handshakes of all listeners: how many, which is next, and which has to go.

A handshake costs a millisecond or more of the event loop, and a client that leaves one unfinished
costs it nothing. So they take turns, a few milliseconds of them all per iteration, and their number
is bounded: beyond it the oldest that waits for its client goes, because a client that means it
answers sooner than new ones arrive. Answers to a handshake that has begun go first; of those that
have not begun the newest, since under a flood the oldest are given up by their clients anyway.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Protocol

from gateway.wire_clock import Clock

TURN_S: Final = 0.003
"""How long handshakes run per event-loop iteration; a step that has begun is finished."""


class Unfinished(Protocol):
    """A handshake, as seen from here."""

    def take_step(self) -> None:
        """Go on with what the client has sent."""

    def drop(self) -> None:
        """Close: too many others are newer."""


class Handshakes:
    """At most ``most`` handshakes at a time; ``now`` must advance within an iteration."""

    def __init__(self, clock: Clock, now: Callable[[], float], most: int) -> None:
        self._clock = clock
        self._now = now
        self._most = most
        self._waiting: OrderedDict[Unfinished, None] = OrderedDict()
        self._fresh: OrderedDict[Unfinished, None] = OrderedDict()
        self._begun: OrderedDict[Unfinished, None] = OrderedDict()
        self._is_going_on = False

    def __len__(self) -> int:
        return len(self._waiting) + len(self._fresh) + len(self._begun)

    def wait_for_client(self, handshake: Unfinished) -> None:
        """It is the client's turn. Above the limit, another one is dropped."""
        self._waiting[handshake] = None
        if len(self) > self._most:
            victims = (self._waiting, self._fresh, self._begun)
            # The one that has just arrived goes only if there is no other.
            if len(self._waiting) == 1 and len(self) > 1:
                victims = (self._fresh, self._begun, self._waiting)
            oldest = next(iter(next(each for each in victims if each)))
            self.remove(oldest)
            oldest.drop()

    def wait_for_turn(self, handshake: Unfinished, *, is_begun: bool) -> None:
        """The client has sent something: go on with it in a later iteration."""
        self._waiting.pop(handshake, None)
        (self._begun if is_begun else self._fresh)[handshake] = None
        if not self._is_going_on:
            self._is_going_on = True
            self._clock.call_later(0, self._go_on)

    def remove(self, handshake: Unfinished) -> None:
        """It is finished, or has failed."""
        for each in (self._waiting, self._fresh, self._begun):
            each.pop(handshake, None)

    def _go_on(self) -> None:
        until = self._now() + TURN_S
        while self._begun or self._fresh:
            if self._begun:
                handshake, _ = self._begun.popitem(last=False)
            else:
                handshake, _ = self._fresh.popitem(last=True)
            handshake.take_step()
            if self._now() > until:
                break
        self._is_going_on = bool(self._begun or self._fresh)
        if self._is_going_on:
            self._clock.call_later(0, self._go_on)
