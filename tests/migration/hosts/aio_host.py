"""Many members in one event loop."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable

from tests.migration.hosts.host import Member, Options, read_members, read_options


def host_tasks(run: Callable[[Options, Member], Awaitable[None]]) -> None:
    """Run each member in a task of its own, until the input ends."""
    options = read_options()

    async def guarded(member: Member) -> None:
        try:
            await run(options, member)
        except Exception as error:  # noqa: BLE001 - the test has to hear of it, whatever it is
            member.print("failed", message=repr(error))
        member.print("closed")

    def read(loop: asyncio.AbstractEventLoop) -> None:
        for member in read_members():
            asyncio.run_coroutine_threadsafe(guarded(member), loop)
        os._exit(0)

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        threading.Thread(target=read, args=(loop,), daemon=True).start()
        await asyncio.Event().wait()

    asyncio.run(serve())
