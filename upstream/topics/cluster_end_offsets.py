"""Where the partitions of the cluster's topics end, for the lag of groups."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import structlog

from upstream.cluster.cluster import Cluster
from upstream.topics.leader_offsets import SLICE, LeaderOffsets, TopicPartition

log = structlog.get_logger("muster.upstream")

TIMEOUT_MS: Final = 3_000
"""How long who wants to know a lag waits at most."""


@dataclass(frozen=True, slots=True)
class EndOffsetLimits:
    """``gather_ms``: how long a lookup waits for others to join it.

    ``kept_ms``: how old an answer may be. ``partitions_max`` are asked for or kept at a time.
    """

    gather_ms: int = 5
    kept_ms: int = 1_000
    partitions_max: int = 100_000
    callers_max: int = 1_000


DEFAULT_LIMITS: Final = EndOffsetLimits()


@dataclass(eq=False, slots=True)
class _Lookup:
    """Partitions that are looked up together, for whoever asks until the answer is too old."""

    wanted: list[TopicPartition] = field(default_factory=list)
    found: dict[TopicPartition, int] = field(default_factory=dict)
    done: asyncio.Event = field(default_factory=asyncio.Event)


class ClusterEndOffsets:
    """``coordinator.service.ends.end_offsets.EndOffsets`` of the cluster's leaders.

    They are asked by Muster's own identity: who asks here has been authorized. Partitions above the
    limits are left out, as are those without an answer in time.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        timeout_ms: int = TIMEOUT_MS,
        limits: EndOffsetLimits = DEFAULT_LIMITS,
    ) -> None:
        timeout_ms = min(timeout_ms, TIMEOUT_MS)
        self._leaders = LeaderOffsets(cluster, timeout_ms=timeout_ms)
        self._timeout_s = timeout_ms / 1_000
        self._limits = limits
        self._callers = 0
        self._gathering: _Lookup | None = None
        self._lookup_of: dict[TopicPartition, _Lookup] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def find_end_offsets(
        self, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, int]:
        """Those that are known in time."""
        if self._callers >= self._limits.callers_max:
            return {}
        self._callers += 1
        try:
            return await self._find(partitions)
        finally:
            self._callers -= 1

    async def find_offsets_at(
        self, partitions: Sequence[TopicPartition], timestamp_ms: int
    ) -> Mapping[TopicPartition, int]:
        """Those that are known in time; asked anew each time."""
        found: dict[TopicPartition, int] = {}
        if self._callers >= self._limits.callers_max:
            return found
        self._callers += 1
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._leaders.find(partitions, found, timestamp_ms)
        except TimeoutError:
            log.debug("offsets_late", missing=len(partitions) - len(found))
        finally:
            self._callers -= 1
        return found

    async def stop(self) -> None:
        """End all lookups; who waits hears what is known."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _find(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        joined: dict[_Lookup, list[TopicPartition]] = {}
        for begin in range(0, len(partitions), SLICE):
            for place in partitions[begin : begin + SLICE]:
                lookup = self._join(place)
                if lookup is not None:
                    joined.setdefault(lookup, []).append(place)
            await asyncio.sleep(0)
        found: dict[TopicPartition, int] = {}
        for lookup, places in joined.items():
            await lookup.done.wait()
            for begin in range(0, len(places), SLICE):
                for place in places[begin : begin + SLICE]:
                    offset = lookup.found.get(place)
                    if offset is not None:
                        found[place] = offset
                await asyncio.sleep(0)
        return found

    def _join(self, place: TopicPartition) -> _Lookup | None:
        """The lookup that a partition is in, or is from now on; ``None`` if there are too many."""
        lookup = self._lookup_of.get(place)
        if lookup is not None:
            return lookup
        if len(self._lookup_of) >= self._limits.partitions_max:
            return None
        if self._gathering is None:
            self._gathering = _Lookup()
            task = asyncio.get_running_loop().create_task(self._run(self._gathering))
            self._tasks.add(task)
            task.add_done_callback(partial(self._end, self._gathering))
        self._gathering.wanted.append(place)
        self._lookup_of[place] = self._gathering
        return self._gathering

    async def _run(self, lookup: _Lookup) -> None:
        """Look up, and keep the answers until they are too old."""
        loop = asyncio.get_running_loop()
        await asyncio.sleep(self._limits.gather_ms / 1_000)
        self._gathering = None
        asked_s = loop.time()
        await self._look_up(lookup)
        lookup.done.set()
        await asyncio.sleep(asked_s + self._limits.kept_ms / 1_000 - loop.time())
        for begin in range(0, len(lookup.wanted), SLICE):
            for place in lookup.wanted[begin : begin + SLICE]:
                del self._lookup_of[place]
            await asyncio.sleep(0)

    def _end(self, lookup: _Lookup, task: asyncio.Task[None]) -> None:
        """However the task ended, and if it never began: nobody waits for it."""
        self._tasks.discard(task)
        lookup.done.set()

    async def _look_up(self, lookup: _Lookup) -> None:
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._leaders.find(lookup.wanted, lookup.found)
        except TimeoutError:
            log.debug("end_offsets_late", missing=len(lookup.wanted) - len(lookup.found))
        except Exception:
            # What one answer says must not end that others are asked for.
            log.exception("reading_end_offsets_failed")
