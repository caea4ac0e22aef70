"""One connection of the load: prebuilt requests in turn, with some in flight.

What a request costs here is the generator's own limit, so that this module does the least it can:
a response that equals the last one to the same request is not decoded.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections import deque
from time import monotonic_ns
from typing import ClassVar, Final, Protocol

from cli.load.wire.messages import MalformedAnswer
from cli.load.wire.request_schedule import RequestSchedule

CONTROL: Final = -1
"""The intended time of requests that are not part of the load: those are not measured."""


class Call:
    """A request that is sent again and again, and how its response is handled.

    ``quiet`` is the last response (with its size) that said nothing new; empty if there is none.
    """

    __slots__ = ("quiet", "sent_ns")

    is_exclusive: ClassVar[bool] = False
    """Whether the load does not send it again before it has been answered."""

    def __init__(self) -> None:
        self.quiet = b""
        self.sent_ns = 0

    @abstractmethod
    def make_frame(self) -> bytes:
        """The request to send now."""

    @abstractmethod
    def handle(self, answer: bytes) -> int:
        """Handle a response that is not the quiet one; returns its error code.

        Raises ``MalformedAnswer``.
        """


class Meter(Protocol):
    """What lanes report to."""

    def record(self, now_ns: int, intended_ns: int, sent_ns: int, code: int) -> None:
        """A request of the load has been answered."""

    def record_control(self, code: int) -> None:
        """A request of a member beside the load has been answered."""

    def wait_for_work(self, lane: Lane) -> None:
        """The lane can send, and nothing is due."""

    def lose(self, lane: Lane, why: str) -> None:
        """The lane's connection is lost with what is in its flight."""


class Lane(asyncio.Protocol):
    """Sends the calls in turn, ``limit`` of them in flight; ``controls`` go first, without limit.

    With a held rate a lane takes one request of the load at a time, so that the lanes share them.
    """

    def __init__(self, address: str, limit: int, schedule: RequestSchedule, meter: Meter) -> None:
        self.address = address
        self.calls: list[Call] = []
        self.controls: deque[Call] = deque()
        self.in_flight: deque[tuple[Call, int, int]] = deque()
        self.is_waiting = False
        self.starts_ns = 0
        self._limit = limit
        self._schedule = schedule
        self._meter = meter
        self._transport: asyncio.Transport | None = None
        self._kept = b""
        self._turn = 0

    def attach(self, transport: asyncio.Transport) -> None:
        """Use a connection that is open and logged in."""
        self._transport = transport
        self._kept = b""
        transport.set_protocol(self)
        if transport.is_closing():
            # Closed since it was opened: its former protocol was told, and nobody else will be.
            self.connection_lost(None)
        self.fill()

    @property
    def is_open(self) -> bool:
        return self._transport is not None

    def data_received(self, data: bytes) -> None:
        """Handle all complete responses, and send what may follow them."""
        if self._kept:
            data = self._kept + data
        position, end = 0, len(data)
        in_flight = self.in_flight
        now_ns = monotonic_ns()
        while end - position >= 4:
            stop = position + 4 + int.from_bytes(data[position : position + 4], "big")
            if stop > end:
                break
            answer = data[position:stop]
            position = stop
            if not in_flight:
                self.give_up("MALFORMED_ANSWER")
                return
            call, intended_ns, sent_ns = in_flight.popleft()
            try:
                code = 0 if answer == call.quiet else call.handle(answer)
            except MalformedAnswer:
                self.give_up("MALFORMED_ANSWER")
                return
            if intended_ns >= 0:
                self._meter.record(now_ns, intended_ns, sent_ns, code)
            else:
                self._meter.record_control(code)
        self._kept = data[position:]
        self.fill()

    def connection_lost(self, error: Exception | None) -> None:
        """Report the loss, unless it was reported."""
        if self._transport is not None:
            self._transport = None
            self._meter.lose(self, "CONNECTION_LOST")

    def give_up(self, why: str) -> None:
        """Cut the connection, and report the loss."""
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()
            self._meter.lose(self, why)

    def close(self) -> None:
        """Close the connection without a report."""
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.close()

    def has_in_flight(self, call: Call) -> bool:
        """Whether the call waits for its response."""
        return any(each is call for each, _, _ in self.in_flight)

    def add_control(self, call: Call) -> None:
        """Send a request before those of the load."""
        self.controls.append(call)
        self.fill()

    def fill(self) -> None:
        """Send what may be sent now."""
        transport = self._transport
        if transport is None:
            return
        in_flight, limit = self.in_flight, self._limit
        frames: list[bytes] = []
        is_held = self._schedule.is_held
        now_ns = monotonic_ns()
        while True:
            if self.controls:
                # They do not wait for answers: a server may hold back that of a heartbeat.
                call, intended_ns = self.controls.popleft(), CONTROL
            elif len(in_flight) >= limit:
                break
            else:
                turn = self._find_turn()
                if turn is None:
                    break  # The next answer fills the lane again.
                due_ns = self._take(now_ns)
                if due_ns is None:
                    if not self.is_waiting:
                        self._meter.wait_for_work(self)
                    break
                self._turn = turn
                call, intended_ns = self.calls[turn], due_ns
            frames.append(call.make_frame())
            call.sent_ns = now_ns
            in_flight.append((call, intended_ns, now_ns))
            if is_held and intended_ns != CONTROL:
                if len(in_flight) < limit and not self.is_waiting:
                    self._meter.wait_for_work(self)
                break
        if frames:
            transport.write(frames[0] if len(frames) == 1 else b"".join(frames))

    def _find_turn(self) -> int | None:
        """The index of the next call in turn; ``None`` if each has to wait for its answer."""
        calls = self.calls
        turn = self._turn
        for _ in range(len(calls)):
            turn = turn + 1 if turn + 1 < len(calls) else 0
            call = calls[turn]
            if not (self.in_flight and call.is_exclusive and self.has_in_flight(call)):
                return turn
        return None if calls else 0

    def _take(self, now_ns: int) -> int | None:
        if not self.calls or now_ns < self.starts_ns:
            return None
        return self._schedule.take(now_ns)
