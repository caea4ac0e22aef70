"""A TCP proxy between clients and a server that takes its time, in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from types import TracebackType
from typing import Final, Self

PIECE: Final = 65_536


class DelayProxy:
    """Holds each piece back for half of ``round_trip_ms``, more or less ``jitter`` of it.

    What leaves first arrives first. ``target`` may be set after the start, before anybody comes.
    It listens on a port that the system chose unless ``listen`` says where.
    """

    def __init__(
        self,
        round_trip_ms: float,
        jitter: float = 0.0,
        seed: int = 0,
        *,
        listen: tuple[str, int] = ("127.0.0.1", 0),
    ) -> None:
        self._where = listen
        self._flowing = asyncio.Event()
        self._flowing.set()
        self.target: tuple[str, int] | None = None
        self.port = 0
        self._half_s = round_trip_ms / 2_000
        self._jitter = jitter
        self._random = random.Random(seed)
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def hold(self) -> None:
        """From now on nothing arrives, of connections there are and of new ones; none is closed."""
        self._loop.call_soon_threadsafe(self._flowing.clear)

    def let_go(self) -> None:
        """All that was held back arrives."""
        self._loop.call_soon_threadsafe(self._flowing.set)

    @property
    def address(self) -> str:
        """HOST:PORT."""
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, *self._where, backlog=1_024)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        assert self.target is not None, "nobody comes before it is set"
        self._tasks.add(task)
        writers = [writer]
        try:
            onward_reader, onward_writer = await asyncio.open_connection(*self.target)
            writers.append(onward_writer)
            await asyncio.gather(
                self._pass_on(reader, onward_writer), self._pass_on(onward_reader, writer)
            )
        except OSError:
            pass
        finally:
            # Who was stopped before it passed anything on has not come to close anything.
            for one in writers:
                one.close()
            self._tasks.discard(task)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        pieces: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        reading = asyncio.ensure_future(self._read(reader, pieces))
        try:
            while True:
                due, piece = await pieces.get()
                await asyncio.sleep(max(0.0, due - self._loop.time()))
                await self._flowing.wait()
                if not piece:
                    return
                writer.write(piece)
                await writer.drain()
        except OSError:
            return
        finally:
            reading.cancel()
            writer.close()

    async def _read(
        self, reader: asyncio.StreamReader, pieces: asyncio.Queue[tuple[float, bytes]]
    ) -> None:
        due = 0.0
        piece = b"-"
        while piece:
            piece = b""
            with contextlib.suppress(OSError):
                piece = await reader.read(PIECE)
            spread = 1 + self._random.uniform(-self._jitter, self._jitter)
            due = max(due, self._loop.time() + self._half_s * spread)
            pieces.put_nowait((due, piece))
