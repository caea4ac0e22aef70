"""Who may connect: the connections of each address, and how many may be made in a second.

Too many connections of one address, or too many a second, are closed at once. The limits for all
addresses together, and for a listener, let a connection wait: it is accepted, and read when its
turn comes. Addresses take turns, so that one that floods makes others wait for hardly more than
one place.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from typing import Final, NamedTuple

from gateway.connected import Connected
from gateway.settings import INT_MAX, GatewaySettings
from gateway.wire_clock import Clock, Timer
from gateway.wire_listener import WireListener
from security.quotas.client_quotas import ClientQuotas
from security.quotas.usage import Usage

WAITING_MAX: Final = 1_000
"""Connections of a listener that wait; each has a descriptor, and nothing of it is read."""
WAITING_OF_ONE_MAX: Final = 50
"""Of one address."""
_SHORTEST_WAIT_S: Final = 0.005

Refusal = tuple[str, str]
"""The reason, as a slug, and in words."""


class _Place(NamedTuple):
    """What a connection counts for."""

    key: str
    """Its address, or that of its network."""
    listener: WireListener


class Admission:
    """The connections by address and by listener."""

    def __init__(self, clock: Clock, settings: GatewaySettings, quotas: ClientQuotas) -> None:
        self._clock = clock
        self._quotas = quotas
        self._limits = settings.compute_address_limits()
        self._rate_max = settings.max_connection_creation_rate
        self._usage = quotas.make_usage()
        self._used: dict[WireListener, tuple[tuple[Usage, int], ...]] = {}
        self._places: dict[Connected, _Place] = {}
        self._counts: dict[str | WireListener, int] = {}
        self._waiting: OrderedDict[_Place, deque[Connected]] = OrderedDict()
        self._waiting_of: Counter[WireListener] = Counter()
        self._coming: Timer | None = None
        self._coming_at = 0.0

    def admit(self, connection: Connected, host: str, listener: WireListener) -> Refusal | None:
        """Take a new connection in, at once or later; or say why it must be closed."""
        if connection in self._places:
            return None
        now = self._clock.time()
        key, most = self._limits.find(host)
        if self._counts.get(key, 0) >= most:
            return "too-many-of-one-address", f"max.connections.per.ip={most} is reached"
        of_listener = listener.max_connections
        if of_listener is not None and self._counts.get(listener, 0) >= of_listener:
            name = f"listener.name.{listener.endpoint.name.lower()}.max.connections"
            return "too-many-of-one-listener", f"{name}={of_listener} is reached"
        used = self._quotas.find_connection_rate(host, now)
        if used is not None and used[0].compute_over_s(now, 1 / used[1]):
            return "too-fast-of-one-address", f"connection_creation_rate={used[1]:g} is reached"
        place = _Place(key, listener)
        if self._compute_wait_s(listener, now) or self._is_behind_others(listener):
            if not self._wait(connection, place):
                return "too-fast", "max.connection.creation.rate is reached, and too many wait"
        else:
            self._note(listener, now)
        if used is not None:
            used[0].record(now, 1 / used[1])
        self._places[connection] = place
        self._count(1, key, listener)
        return None

    def hand_over(self, former: Connected, connection: Connected) -> None:
        """The connection goes on in the place of another, which was its handshake."""
        place = self._places.pop(former, None)
        if place is not None:
            self._places[connection] = place

    def leave(self, connection: Connected) -> None:
        """A connection is closed, or was never taken in."""
        place = self._places.pop(connection, None)
        if place is None:
            return
        self._count(-1, *place)
        waiting = self._waiting.get(place)
        if waiting is not None and connection in waiting:
            waiting.remove(connection)
            self._note_end_of_wait(place)

    def _count(self, change: int, *keys: str | WireListener) -> None:
        for key in keys:
            count = self._counts.get(key, 0) + change
            if count:
                self._counts[key] = count
            else:
                del self._counts[key]

    # ----------------------------------------------------------------------------- creations

    def _compute_wait_s(self, listener: WireListener, now: float) -> float:
        """How long until one more connection may be made on the listener."""
        wait_s = 0.0
        for usage, most in self._find_used(listener):
            wait_s = max(wait_s, usage.compute_over_s(now, 1 / most))
        return wait_s

    def _note(self, listener: WireListener, now: float) -> None:
        for usage, most in self._find_used(listener):
            usage.record(now, 1 / most)

    def _find_used(self, listener: WireListener) -> tuple[tuple[Usage, int], ...]:
        """The rates that bound new connections of the listener: most often there is none."""
        found = self._used.get(listener)
        if found is None:
            rates = (
                (self._usage, self._rate_max),
                (self._quotas.make_usage(), listener.max_connection_creation_rate),
            )
            found = tuple(
                (usage, most) for usage, most in rates if most is not None and most < INT_MAX
            )
            self._used[listener] = found
        return found

    def _is_behind_others(self, listener: WireListener) -> bool:
        """Whether connections wait whose limits this one shares."""
        return bool(self._waiting if self._rate_max < INT_MAX else self._waiting_of[listener])

    def _wait(self, connection: Connected, place: _Place) -> bool:
        waiting = self._waiting.get(place, ())
        if self._waiting_of[place.listener] >= WAITING_MAX or len(waiting) >= WAITING_OF_ONE_MAX:
            return False
        self._waiting.setdefault(place, deque()).append(connection)
        self._waiting_of[place.listener] += 1
        connection.hold_back()
        self._call(_SHORTEST_WAIT_S)
        return True

    def _note_end_of_wait(self, place: _Place) -> None:
        self._waiting_of[place.listener] -= 1
        if not self._waiting[place]:
            del self._waiting[place]

    def _call(self, wait_s: float) -> None:
        """Let in those whose turn it is in so many seconds, unless that happens earlier."""
        wait_s = max(wait_s, _SHORTEST_WAIT_S)
        at = self._clock.time() + wait_s
        if self._coming is not None:
            if self._coming_at <= at:
                return
            self._coming.cancel()
        self._coming, self._coming_at = self._clock.call_later(wait_s, self._let_in), at

    def _let_in(self) -> None:
        """Let in those whose turn it is, one of each address after another."""
        self._coming = None
        now = self._clock.time()
        for _ in range(self._waiting_of.total()):
            place, waiting = next(iter(self._waiting.items()))
            self._waiting.move_to_end(place)
            if self._compute_wait_s(place.listener, now):
                continue
            connection = waiting.popleft()
            self._note_end_of_wait(place)
            self._note(place.listener, now)
            connection.let_in()
        if self._waiting:
            waited_for = (listener for listener, count in self._waiting_of.items() if count)
            self._call(min(self._compute_wait_s(each, now) for each in waited_for))
