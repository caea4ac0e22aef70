"""One process of a load test, `python -m cli.load.processes.worker`, which ``workers`` starts.

The first line of standard input is its plan and share. Then it reads ``go START END`` (ns of the
monotonic clock) and ``stop``; the end of the input is a ``stop`` too, so that it does not outlive
the first process. It prints one JSON object a line: see ``cli.load.processes.workers``.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from time import monotonic_ns
from typing import Any, Final, Protocol

from cli.load.figures.recorder import Recorder
from cli.load.options.plan import GroupProtocol, Plan, Share
from cli.load.wire.link import RefusedError
from cli.load.wire.messages import MalformedAnswer

_NS: Final = 1_000_000_000


class Crew(Protocol):
    """What a process does, by protocol."""

    async def gather(self) -> None:
        """Connect, and let all members join."""

    async def run(self, start_ns: int, end_ns: int) -> None:
        """Send the load from one time to another, and wait for its answers."""

    def stop(self, now_ns: int) -> None:
        """End the load now."""

    async def leave(self) -> None:
        """Let all members leave."""

    def count_joined(self) -> int:
        """How many members have joined."""


def make_crew(plan: Plan, share: Share, recorder: Recorder) -> Crew:
    """The crew of the plan's protocol."""
    if plan.protocol is GroupProtocol.SESSION:
        from cli.load.processes.session_crew import SessionCrew

        return SessionCrew(plan, share, recorder)
    from cli.load.processes.wire_crew import WireCrew

    return WireCrew(plan, share, recorder)


class Worker:
    """The phases of one process, as the first process orders them."""

    def __init__(self, plan: Plan, share: Share) -> None:
        self._plan = plan
        self._recorder = Recorder(is_held=share.rate > 0)
        self._crew = make_crew(plan, share, self._recorder)
        self._go: asyncio.Future[tuple[int, int]] = asyncio.get_running_loop().create_future()
        self._gathering: asyncio.Task[None] | None = None
        self._report_ns = monotonic_ns()

    def obey(self, line: str) -> None:
        """Do what a line of the first process says."""
        match line.split():
            case ["go", start, end]:
                if not self._go.done():
                    self._go.set_result((int(start), int(end)))
            case _:
                self.stop()

    def stop(self) -> None:
        """End what it does now; members leave."""
        now_ns = monotonic_ns()
        self._recorder.stop(now_ns)
        self._recorder.end_busy()
        self._crew.stop(now_ns)
        if self._gathering is not None:
            self._gathering.cancel()
        self._go.cancel()

    def fail(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Take an error that nobody else took, which is a bug, and end."""
        error = context.get("exception")
        say({"say": "failed", "message": f"{context['message']}: {error!r}"})
        self.stop()

    async def work(self) -> None:
        """Everything from the first connection to the last."""
        reporting = asyncio.create_task(self._report())
        try:
            self._gathering = asyncio.create_task(self._crew.gather())
            await self._gathering
            # A collection would stop all connections; hardly anything is allocated from here on.
            gc.collect()
            gc.freeze()
            gc.disable()
            self._say_figures()
            say({"say": "ready"})
            start_ns, end_ns = await self._go
            self._report_ns = start_ns + int(self._plan.ramp_s * _NS)
            self._recorder.open(self._report_ns, end_ns)
            self._call_at(self._report_ns, self._recorder.begin_busy)
            self._call_at(end_ns, self._recorder.end_busy)
            await self._crew.run(start_ns, end_ns)
        except asyncio.CancelledError:
            pass
        except (OSError, TimeoutError, RefusedError, MalformedAnswer) as error:
            say({"say": "failed", "message": str(error) or "no answer in time"})
        finally:
            reporting.cancel()
            self._say_figures()
            await self._crew.leave()
            say({"say": "done"})

    def _call_at(self, at_ns: int, work: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_later(max(0, at_ns - monotonic_ns()) / _NS, work)

    async def _report(self) -> None:
        """Say the figures of every second; from the measured part on, of each of its seconds."""
        while True:
            self._report_ns += _NS
            await asyncio.sleep(max(0, self._report_ns - monotonic_ns()) / _NS)
            self._say_figures()

    def _say_figures(self) -> None:
        say(
            {
                "say": "figures",
                "joined": self._crew.count_joined(),
                "figures": self._recorder.take().dump(),
            }
        )


def say(content: dict[str, Any]) -> None:
    """Print a line for the first process, if it is still there."""
    with suppress(BrokenPipeError, ValueError):
        print(json.dumps(content), flush=True)


async def _main() -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 24)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    order = json.loads(await reader.readline())
    worker = Worker(Plan.load(order["plan"]), Share.load(order["share"]))

    async def listen() -> None:
        while line := await reader.readline():
            worker.obey(line.decode())
        worker.stop()

    loop.set_exception_handler(worker.fail)
    listening = asyncio.create_task(listen())
    loop.add_signal_handler(signal.SIGTERM, worker.stop)
    await worker.work()
    listening.cancel()


def _run() -> None:
    # Ctrl-C reaches all processes of the terminal; the first one says when to stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        import uvloop
    except ImportError:
        asyncio.run(_main())
    else:
        uvloop.run(_main())
    # No wait for threads of gRPC.
    os._exit(0)


if __name__ == "__main__":
    _run()
