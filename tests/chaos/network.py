"""A TCP proxy that behaves as bad networks do. Bytes of one connection always come in order.

What a connection holds may arrive after its client has given it up and gone on over another one:
after a loss TCP sends again later than a new handshake takes.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

CHUNK: Final = 65_536
FAULTS: Final = ("held to server", "held to client", "held both ways", "half-open", "reset")


class Way:
    """One direction of a connection: what was read is written later, in order."""

    def __init__(self, sink: asyncio.StreamWriter, delay: DelayRange, tally: Counter[str]) -> None:
        self.is_cut = False
        """Nothing arrives any more; what comes is thrown away."""
        self.is_late = False
        """The sender has given the connection up."""
        self._sink = sink
        self._delay = delay
        self._tally = tally
        self._items: deque[tuple[float, bytes]] = deque()
        self._held_until = 0.0
        self._has_ended = False
        self._changed = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def put(self, data: bytes) -> None:
        """These bytes were sent now."""
        at = self._loop.time() + self._delay.draw()
        if self._items:
            at = max(at, self._items[-1][0])
        self._items.append((at, data))
        self._changed.set()

    def put_end(self) -> None:
        """No more are sent."""
        self._has_ended = True
        self._changed.set()

    def hold(self, for_s: float) -> None:
        """Nothing arrives before so much has passed."""
        self._held_until = max(self._held_until, self._loop.time() + for_s)

    def release(self) -> None:
        """What is held arrives at once."""
        self._held_until = 0.0

    async def carry(self) -> None:
        """Returns when all has arrived, after the end or a cut."""
        while True:
            while not self._items:
                if self._has_ended:
                    return
                self._changed.clear()
                await self._changed.wait()
            at, data = self._items[0]
            left_s = max(at, self._held_until) - self._loop.time()
            if left_s > 0:
                # Short enough to see that it was released.
                await asyncio.sleep(min(left_s, 0.05))
                continue
            self._items.popleft()
            if not self.is_cut:
                self._tally["late bytes" if self.is_late else "bytes"] += len(data)
                self._sink.write(data)
                await self._sink.drain()


class DelayRange:
    """How long bytes take one way, in seconds: somewhere between two bounds."""

    def __init__(self, chance: random.Random, least_s: float, most_s: float) -> None:
        self._chance, self._least_s, self._most_s = chance, least_s, most_s

    def draw(self) -> float:
        return self._chance.uniform(self._least_s, self._most_s)


class Connection:
    """One connection through the proxy."""

    def __init__(
        self,
        client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        server: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        delay: DelayRange,
        tally: Counter[str],
    ) -> None:
        self._from_client, self._client = client
        self._from_server, self._server = server
        self.up = Way(self._server, delay, tally)
        self.down = Way(self._client, delay, tally)

    async def run(self) -> None:
        """Returns when both ends are closed."""
        try:
            await asyncio.gather(
                self._read(self._from_client, self.up),
                self._read(self._from_server, self.down),
                self._carry(self.up, self._server),
                self._carry(self.down, self._client),
            )
        finally:
            self._client.transport.abort()
            self._server.transport.abort()
            # Sockets are closed in the next turn of the loop.
            await asyncio.sleep(0)

    def reset(self) -> None:
        """Both ends see it, and what was under way is gone."""
        self.up.is_cut = self.down.is_cut = True
        self.up.release()
        self.down.release()
        self._client.transport.abort()
        self._server.transport.abort()

    def abandon(self) -> None:
        """The client's end is gone; what it has sent arrives all the same, and then the end."""
        self.up.is_late = self.down.is_cut = True
        self.down.release()
        self._client.transport.abort()

    async def _read(self, source: asyncio.StreamReader, way: Way) -> None:
        try:
            while data := await source.read(CHUNK):
                way.put(data)
        except OSError:
            pass
        way.put_end()

    async def _carry(self, way: Way, sink: asyncio.StreamWriter) -> None:
        try:
            await way.carry()
            if sink.can_write_eof() and not sink.transport.is_closing():
                sink.write_eof()
        except (OSError, RuntimeError):
            sink.transport.abort()


class Network:
    """The path of one process to the server. ``tally`` counts what happens on it."""

    def __init__(
        self, target_port: int, chance: random.Random, delay: DelayRange, tally: Counter[str]
    ) -> None:
        self._target_port = target_port
        self._chance = chance
        self._delay = delay
        self._tally = tally
        self._connections: list[Connection] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    @property
    def target(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def strike(self) -> None:
        """Something happens to the newest connection."""
        if not self._connections:
            return
        connection, chance = self._connections[-1], self._chance
        what = chance.choice((*FAULTS, "half-open"))
        self._tally[what] += 1
        for_s = chance.choice((chance.uniform(0.1, 1.0), chance.uniform(1.0, 6.0)))
        match what:
            case "held to server":
                connection.up.hold(for_s)
            case "held to client":
                connection.down.hold(for_s)
            case "held both ways":
                connection.up.hold(for_s)
                connection.down.hold(for_s)
            case "half-open":
                connection.up.hold(for_s)
                # What the client says meanwhile is what comes late.
                await asyncio.sleep(chance.uniform(0, 0.2))
                connection.abandon()
            case _:
                connection.reset()

    def heal(self) -> None:
        """What is held arrives, and nothing is held any more."""
        for connection in self._connections:
            connection.up.release()
            connection.down.release()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A client connects."""
        try:
            server = await asyncio.open_connection("127.0.0.1", self._target_port)
        except OSError:
            # The server is being started again.
            writer.transport.abort()
            await asyncio.sleep(0)
            return
        connection = Connection((reader, writer), server, self._delay, self._tally)
        self._connections.append(connection)
        self._tally["connections"] += 1
        try:
            await connection.run()
        finally:
            self._connections.remove(connection)


@asynccontextmanager
async def running_network(
    target_port: int, chance: random.Random, delay: DelayRange, tally: Counter[str]
) -> AsyncIterator[Network]:
    network = Network(target_port, chance, delay, tally)
    tasks: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await network.accept(reader, writer)
        finally:
            tasks.discard(task)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    network.port = server.sockets[0].getsockname()[1]
    try:
        yield network
    finally:
        server.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
