"""Waiting for what becomes of a member, of whichever protocol."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Protocol

from muster.errors import MemberLost, MusterError
from muster.membership import Partitions
from muster.partitions import TopicPartition


class ChangingEngine(Protocol):
    """What both engines have; ``failure`` is why the member is out of its group for good."""

    failure: MusterError | None

    async def wait_for_change(self) -> None:
        """Returns after the next change of anything."""


async def iterate_changes(
    engine: ChangingEngine,
    find_grants: Callable[[], Mapping[TopicPartition, int]],
    is_closing: Callable[[], bool],
) -> AsyncIterator[Partitions]:
    """The assignment now and after each change; of several changes at once only the last.

    A partition that was gone meanwhile, and is there again under another number, is missing once
    before: somebody else may have had it. Ends when the member is closing. Raises the engine's
    failure.
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
    """Returns when the member is one. Raises the engine's failure, ``TimeoutError``.

    Raises ``MemberLost`` where the member is closed meanwhile.
    """
    async with asyncio.timeout(timeout_ms / 1000):
        while not is_member():
            if engine.failure is not None:
                raise engine.failure
            if is_closing():
                raise MemberLost("the member was closed while it joined")
            await engine.wait_for_change()
