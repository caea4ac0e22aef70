"""A connection between a client and the server, as each of them has it.

What breaks is the way between them, and each hears of it when it does, or never: the client of a
half-open connection knows at once and comes by another, while the server holds the old one, hears
what was still on its way, late perhaps, and answers into nowhere.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from gateway.connection.connection import Connection
from tests.sim.checkers.violations import check
from tests.sim.wire.frames import decode_answer, encode_request, read_correlation_id

if TYPE_CHECKING:
    from tests.sim.wire.world import WireWorld

FAST_MS = (0, 5)
SLOW_MEAN_MS = 150
CONNECTING_MS = 3
LATE_MS = (1, 4_000)
"""How much later than its client gave it up an old connection's bytes may arrive."""
FIN_LATE_MS = (2_000, 40_000)

OnAnswer = Callable[[Any, int], None]
"""(entity, when the server wrote it)."""


_ADDRESSES = {"peername": ("127.0.0.1", 50_000), "sockname": ("127.0.0.1", 9_092)}


@dataclass(slots=True)
class Asked:
    """A request that its client waits for."""

    correlation_id: int
    key: int
    version: int
    on_answer: OnAnswer


@dataclass(slots=True, eq=False)
class Bytes:
    """What is on its way to the server. ``is_true``: whether it still says what is so."""

    data: bytes
    is_true: Callable[[], bool] | None
    has_arrived: bool = False


class ServerEnd:
    """The transport of the server's side: takes what is written, and may be closed."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._is_closing = False

    def get_extra_info(self, name: str) -> tuple[str, int] | None:
        return _ADDRESSES.get(name)

    def set_write_buffer_limits(self, high: int) -> None:
        assert high > 0

    def write(self, data: bytes) -> None:
        assert not self._is_closing, "the server writes to a connection that it closed"
        self._link.carry_back(bytes(data))

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._link.server_closed()

    abort = close

    def is_closing(self) -> bool:
        return self._is_closing

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0


class Link:
    """One connection. ``on_lost`` is called when the client learns that it is gone."""

    def __init__(self, world: WireWorld, client_id: str, on_lost: Callable[[], None]) -> None:
        self.world = world
        self._client_id = client_id.encode()
        self._on_lost = on_lost
        self.is_open = True
        """As far as the client knows."""
        self._passes = True
        """Whether answers reach the client."""
        self._correlation_id = 0
        self._asked: deque[Asked] = deque()
        self._under_way: list[Bytes] = []
        self._to_server_ms = world.time.now_ms + CONNECTING_MS
        self._to_client_ms = 0
        self._received = b""
        self._process = world.process if world.is_up else None
        self._server: Connection | None = None
        if self._process is None:
            world.time.call_later_ms(CONNECTING_MS, self._lost)
        else:
            world.links.append(self)

    @property
    def waits(self) -> bool:
        """Whether an answer is awaited."""
        return bool(self._asked)

    # ---------------------------------------------------------------------------- the client's

    def ask(
        self,
        key: int,
        version: int,
        on_answer: OnAnswer,
        is_true: Callable[[], bool] | None = None,
        /,
        **fields: Any,
    ) -> None:
        """Send a request. ``is_true`` says of old bytes whether they may still arrive."""
        assert self.is_open, "asked on a connection that is gone"
        self._correlation_id += 1
        self._asked.append(Asked(self._correlation_id, key, version, on_answer))
        data = encode_request(key, version, self._correlation_id, self._client_id, fields)
        sent = Bytes(data, is_true)
        self._under_way.append(sent)
        world = self.world
        at_ms = max(self._to_server_ms, world.time.now_ms + world.delay_ms())
        self._to_server_ms = at_ms
        world.time.call_later_ms(at_ms - world.time.now_ms, partial(self._arrive, sent))

    def close(self) -> None:
        """In order: the server hears of it after all that was sent."""
        if not self.is_open:
            return
        self.is_open = False
        self._asked.clear()
        delay_ms = max(self._to_server_ms - self.world.time.now_ms, 0) + 1
        self.world.time.call_later_ms(delay_ms, self._end_server)

    def cut(self) -> None:
        """The connection breaks and both ends know soon; what was on its way may be lost."""
        if not self.is_open:
            return
        self.world.faults.note("connection cut")
        is_lost = self.world.random.random() < 0.5
        if is_lost:
            self._lose_under_way()
        self._passes = False
        delay_ms = max(self._to_server_ms - self.world.time.now_ms, 0) + self.world.delay_ms() + 1
        self.world.time.call_later_ms(delay_ms, self._end_server)
        self._lost()

    def break_half_open(self) -> None:
        """The client knows at once. The server is not told, or much later."""
        if not self.is_open:
            return
        self.world.note("half-open", self._client_id.decode(), len(self._asked))
        self._abandon_to_server()
        self._lost()

    def give_up(self) -> None:
        """The client waited long enough, closes, and its FIN is lost like all else."""
        if not self.is_open:
            return
        self.is_open = False
        self._asked.clear()
        self._abandon_to_server()

    def go_silent(self) -> None:
        """Nothing passes to the client any more, and neither end knows."""
        self.world.faults.note("answer lost")
        self.world.disturb()
        self._passes = False

    def _abandon_to_server(self) -> None:
        """The server keeps its end; of what is under way some is lost, some is late."""
        world = self.world
        self._passes = False
        if world.faults.is_on("old bytes late") and self._under_way:
            if world.random.random() < world.faults.probability["old bytes late"]:
                self._delay_under_way(world.random.randint(*LATE_MS))
        elif world.random.random() < 0.3:
            self._lose_under_way()
        fin_late = world.random.random()
        if fin_late < 0.6:
            world.time.call_later_ms(world.random.randint(*FIN_LATE_MS), self._end_server)

    def _lose_under_way(self) -> None:
        for sent in self._under_way:
            sent.has_arrived = True
        self._under_way.clear()

    def _delay_under_way(self, late_ms: int) -> None:
        """In their order still, but later than what a new connection brings."""
        late, self._under_way = self._under_way, []
        for sent in late:
            sent.has_arrived = True
            again = Bytes(sent.data, sent.is_true or (lambda: True))
            self._under_way.append(again)
            self.world.time.call_later_ms(late_ms, partial(self._arrive, again))

    def _lost(self) -> None:
        if self.is_open:
            self.is_open = False
            self._asked.clear()
            self._on_lost()

    # ---------------------------------------------------------------------------- the server's

    def _arrive(self, sent: Bytes) -> None:
        """Bytes reach the machine of the server."""
        if sent.has_arrived:
            return
        sent.has_arrived = True
        self._under_way.remove(sent)
        world = self.world
        if not world.is_up or self._process is not world.process:
            return
        if not self.is_open:
            if sent.is_true is not None and not sent.is_true():
                # A network may keep anything: what would be a lie by now is not said.
                world.faults.note("old bytes lost")
                return
            world.faults.note("old bytes late")
        world.delivered += 1
        process = self._process
        assert process is not None
        process.call_soon(partial(self._serve, sent.data))

    def _serve(self, data: bytes) -> None:
        if self._server is None:
            self._server = self.world.gateway.connect(ServerEnd(self))
        elif self._server.closed:
            return
        self._server.data_received(data)

    def _end_server(self) -> None:
        """The server learns that the connection is gone."""
        self._passes = False
        world = self.world
        if world.is_up and self._process is world.process:
            world.process.call_soon(self._end_connection)

    def _end_connection(self) -> None:
        server = self._server
        self._forget()
        if server is not None and not server.closed:
            server.connection_lost(None)

    def server_closed(self) -> None:
        """The server ends it: the client learns so after what was answered."""
        self._forget()
        if self._passes:
            world = self.world
            at_ms = max(self._to_client_ms, world.time.now_ms + world.delay_ms())
            world.time.call_later_ms(at_ms - world.time.now_ms, self._lost)
        self._passes = False

    def server_died(self) -> None:
        """The process is gone, and its machine says so, soon or when it is asked."""
        self._passes = False
        self.world.time.call_later_ms(self.world.random.choice((0, 2, 50, 700)), self._lost)

    def _forget(self) -> None:
        if self in self.world.links:
            self.world.links.remove(self)

    def carry_back(self, data: bytes) -> None:
        """What the server writes, to the client."""
        if not self._passes:
            return
        world = self.world
        at_ms = max(self._to_client_ms, world.time.now_ms + world.delay_ms())
        self._to_client_ms = at_ms
        receive = partial(self._receive, data, world.time.now_ms)
        world.time.call_later_ms(at_ms - world.time.now_ms, receive)

    def _receive(self, data: bytes, written_ms: int) -> None:
        if not self._passes or not self.is_open:
            return
        self._received += data
        while len(self._received) >= 4:
            (size,) = struct.unpack_from(">i", self._received)
            if len(self._received) < 4 + size:
                break
            frame, self._received = self._received[4 : 4 + size], self._received[4 + size :]
            self._take(frame, written_ms)
            if not self.is_open:
                return

    def _take(self, frame: bytes, written_ms: int) -> None:
        correlation_id = read_correlation_id(frame)
        check(bool(self._asked), "L2", f"an answer {correlation_id} that nobody asked for")
        asked = self._asked.popleft()
        check(
            correlation_id == asked.correlation_id,
            "L2",
            f"{self._client_id.decode()}: correlation id {correlation_id} came where "
            f"{asked.correlation_id} (API {asked.key}) is next: answers are out of order",
        )
        self.world.answered += 1
        asked.on_answer(decode_answer(asked.key, asked.version, frame), written_ms)
