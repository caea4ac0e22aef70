"""Waits for changes of a member of either protocol."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Protocol

from muster.errors import MemberLost, MusterError
from muster.membership import Partitions
from muster.partitions import TopicPartition


class ChangingEngine(Protocol):
    """Common to both engines; ``failure`` is why the member is out of its group for good."""

    failure: MusterError | None

    async def wait_for_change(self) -> None:
        """Return after the next change of anything."""


async def iterate_changes(
    engine: ChangingEngine,
    find_grants: Callable[[], Mapping[TopicPartition, int]],
    is_closing: Callable[[], bool],
) -> AsyncIterator[Partitions]:
    """Yield the assignment now and after each change; of several at once only the last.

    A partition that was lost and assigned again, so that it has a new grant number, is missing from
    one assignment in between: another member may have had it. Ends when the member closes. Raises
    the engine's failure.
    """
    seen: Mapping[TopicPartition, int] | None = None
    while not is_closing():
        grants = dict(find_grants())
        if grants != seen:
            before = seen or {}
            seen = {key: grant for key, grant in grants.items() if before.get(key, grant) == grant}
            yield frozenset(seen)
        elif engine.failure is not None:
            raise engine.failure
        else:
            await engine.wait_for_change()


async def wait_until_joined(
    engine: ChangingEngine,
    is_member: Callable[[], bool],
    is_closing: Callable[[], bool],
    timeout_ms: int,
) -> None:
    """Return when the member has joined. Raises the engine's failure, ``TimeoutError``.

    Raises ``MemberLost`` if the member is closed meanwhile.
    """
    async with asyncio.timeout(timeout_ms / 1000):
        while not is_member():
            if engine.failure is not None:
                raise engine.failure
            if is_closing():
                raise MemberLost("the member was closed while it joined")
            await engine.wait_for_change()
