"""A TCP proxy that can fall silent, as a network does, or drop its connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Proxy:
    """Forwards to ``target_port``. ``freeze`` holds all bytes back; no FIN, no RST."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0
        self.accepted = 0

    @property
    def target(self) -> str:
        return f"127.0.0.1:{self.port}"

    def freeze(self) -> None:
        self._flowing.clear()

    def thaw(self) -> None:
        self._flowing.set()

    def abandon(self) -> None:
        """Freezes the connections there are, for good; new ones flow."""
        self._flowing.clear()
        self._flowing = asyncio.Event()
        self._flowing.set()

    def cut(self) -> None:
        """Resets all connections; new ones are accepted."""
        for writer in tuple(self._writers):
            writer.transport.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        # Who ends while the other half is being opened must find this one.
        self._writers.add(writer)
        try:
            upstream_reader, upstream = await asyncio.open_connection(
                "127.0.0.1", self._target_port
            )
        except ConnectionError:
            # The server is being started again: who connects sees that.
            self._writers.discard(writer)
            writer.transport.abort()
            return
        if writer.transport.is_closing():
            self._writers.discard(writer)
            upstream.transport.abort()
            return
        self._writers.add(upstream)
        for source, sink in ((reader, upstream), (upstream_reader, writer)):
            task = asyncio.create_task(self._pump(source, sink, self._flowing))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pump(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, flowing: asyncio.Event
    ) -> None:
        try:
            while data := await source.read(65_536):
                await flowing.wait()
                sink.write(data)
                await sink.drain()
        except ConnectionError:
            pass
        finally:
            self._writers.discard(sink)
            sink.transport.abort()


@asynccontextmanager
async def running_proxy(target_port: int) -> AsyncIterator[Proxy]:
    proxy = Proxy(target_port)
    server = await asyncio.start_server(proxy._accept, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        proxy.thaw()
        proxy.cut()
        for task in tuple(proxy._tasks):
            task.cancel()
        await asyncio.gather(*proxy._tasks, return_exceptions=True)
        await server.wait_closed()
