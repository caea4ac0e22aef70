"""A cluster of scripted brokers over sockets, for tests of what stands in front of one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from upstream.cluster.cluster import ClusterBroker, ClusterUnreachable


class FakeRawLink:
    """A ``RawLink`` over a socket."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport

    def hand_over(self, protocol: asyncio.Protocol) -> asyncio.Transport:
        """Give the connection away."""
        self._transport.set_protocol(protocol)
        return self._transport

    def close(self) -> None:
        """Close."""
        self._transport.abort()


class FakeBroker:
    """Listens; each frame, without its size, is given to ``answer``, which may return frames."""

    def __init__(self, answer: Callable[[bytes], bytes | None]) -> None:
        self.answer = answer
        self.received: list[bytes] = []
        self.writers: list[asyncio.StreamWriter] = []
        self.port = 0
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen on a free port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=2**20)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                frame = await reader.readexactly(size)
                self.received.append(frame)
                answer = self.answer(frame)
                if answer is not None:
                    writer.write(answer)
                    await writer.drain()
        except (OSError, EOFError, asyncio.IncompleteReadError):
            writer.close()

    def has_received(self, frames: int) -> bool:
        """Whether so many frames have come, or more."""
        return len(self.received) >= frames

    async def stop(self) -> None:
        """Close everything."""
        if self._server is not None:
            self._server.close()
        # A connection may have been accepted just now: it is there in the iteration after.
        for _ in range(2):
            for writer in self.writers:
                writer.transport.abort()
            await asyncio.sleep(0)


class FakeCluster:
    """The parts of ``Cluster`` that relays use; ``gate`` holds connecting while it is not set."""

    def __init__(self) -> None:
        self.brokers: dict[int, ClusterBroker] = {}
        self.gate = asyncio.Event()
        self.gate.set()
        self._callbacks: list[Callable[[], None]] = []

    def set_brokers(self, ports: dict[int, int]) -> None:
        """The brokers, by node id and port."""
        self.brokers = {
            node_id: ClusterBroker(node_id, "127.0.0.1", port) for node_id, port in ports.items()
        }
        for callback in self._callbacks:
            callback()

    def on_brokers_changed(self, callback: Callable[[], None]) -> None:
        """Call after each change."""
        self._callbacks.append(callback)

    async def open_raw(self, node_id: int) -> FakeRawLink:
        """Connect to the broker."""
        await self.gate.wait()
        broker = self.brokers[node_id]
        loop = asyncio.get_running_loop()
        try:
            transport, _ = await loop.create_connection(asyncio.Protocol, broker.host, broker.port)
        except OSError as error:
            raise ClusterUnreachable(str(error)) from error
        return FakeRawLink(transport)
