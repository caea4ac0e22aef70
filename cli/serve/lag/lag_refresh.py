"""Looks at the lag of all groups again and again, in the background, and a little at a time.

A scrape shows what the last look found, and how old that is. Each look goes through the groups in
batches: what they have committed is read first, and then where the partitions end, so that nothing
is ahead of the end only because it was read later.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import structlog

from cli.serve.lag.commit_windows import CommitWindow
from cli.serve.lag.committed_offsets import CommittedOffsets
from cli.serve.lag.group_status import WINDOW, Rule, find_rule
from cli.serve.lag.lag_figures import (
    UNKNOWN_ENDS,
    Committed,
    Ends,
    GroupLag,
    LagFigures,
    PartitionLag,
    Place,
    Summing,
    compute_lag,
)
from cli.serve.lag.loop_share import LoopShare
from coordinator.service.ends.end_offset_times import EndOffsetTimes, Seen
from coordinator.service.ends.end_offsets import EndOffsets
from model.errors import GroupError
from model.ids import GroupId, TopicId, TopicName

log = structlog.get_logger("muster.serve")

BATCH: Final = 500
"""Partitions whose ends are asked for at a time."""
_SLICE: Final = 100
"""Partitions that are judged at a time, each in some 10 µs."""
_EARLIEST: Final = -2
_LATEST: Final = -1

_Windows = dict[Place, CommitWindow]


class LagLimits(NamedTuple):
    """``partitions_max`` bounds the partitions of all groups together."""

    interval_ms: int
    partitions_max: int

    @property
    def least_span_ms(self) -> int:
        """A consumer has stopped after as long as its window takes to fill, at least."""
        return WINDOW * self.interval_ms


class _Now(NamedTuple):
    """When partitions are judged."""

    wall_ms: int
    monotonic_ms: int


class _Look:
    """One look at all groups, as far as it has come."""

    def __init__(self) -> None:
        self.began_s = time.monotonic()
        self.groups: dict[str, GroupLag] = {}
        self.ends: dict[Place, Ends] = {}
        self.windows: dict[GroupId, _Windows] = {}
        self.partitions = 0
        self.omitted = 0
        self.failed = 0


class LagRefresh:
    """``figures`` are those of the last look, ``None`` until there was one.

    ``find_topic_id`` tells topics of one name apart; ``None`` for one that is not known.
    """

    def __init__(
        self,
        shards: int,
        committed: CommittedOffsets,
        end_offsets: EndOffsets,
        times: EndOffsetTimes,
        limits: LagLimits,
        *,
        find_topic_id: Callable[[TopicName], TopicId | None],
    ) -> None:
        self._shards = shards
        self._committed = committed
        self._end_offsets = end_offsets
        self._times = times
        self._limits = limits
        self._find_topic_id = find_topic_id
        self._windows: dict[GroupId, _Windows] = {}
        self._task: asyncio.Task[None] | None = None
        self.figures: LagFigures | None = None

    def start(self) -> None:
        """Look for the first time soon, and then at the interval."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name="muster-lag")

    async def stop(self) -> None:
        """Look no longer."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            began_s = time.monotonic()
            try:
                await self.look()
            except Exception:
                # The figures stay as they are, and their age says so.
                log.exception("lag_not_read")
            left_s = began_s + self._limits.interval_ms / 1_000 - time.monotonic()
            await asyncio.sleep(max(left_s, 1.0))

    async def look(self) -> None:
        """Look at all groups once."""
        look, share = _Look(), LoopShare()
        batch: dict[GroupId, list[Committed]] = {}
        waiting = 0
        for shard in range(self._shards):
            await share.rest()
            for group_id in self._committed.list_groups(shard):
                found = await self._read(look, group_id, share)
                if not found:
                    continue
                batch[group_id] = found
                waiting += len(found)
                if waiting >= BATCH:
                    await self._settle(look, batch, share)
                    batch, waiting = {}, 0
        await self._settle(look, batch, share)
        self._windows = look.windows
        self.figures = LagFigures(
            look.groups, look.ends, look.began_s, time.monotonic(), look.omitted, look.failed
        )

    async def _read(self, look: _Look, group_id: GroupId, share: LoopShare) -> list[Committed]:
        left = self._limits.partitions_max - look.partitions
        if left <= 0:
            look.omitted += 1
            return []
        try:
            # One more than there may be: such a group is left out as a whole.
            found = await self._committed.read(group_id, share, left + 1)
        except GroupError:
            look.failed += 1
            return []
        if len(found) > left:
            look.omitted += 1
            return []
        look.partitions += len(found)
        return found

    async def _settle(
        self, look: _Look, batch: Mapping[GroupId, Sequence[Committed]], share: LoopShare
    ) -> None:
        """Find the ends of what these groups have committed to, and judge the groups."""
        places = await _collect(batch, share)
        ends: dict[Place, Ends] = {}
        for begin in range(0, len(places), BATCH):
            asked = places[begin : begin + BATCH]
            latest = await self._end_offsets.find_offsets_at(asked, _LATEST)
            earliest = await self._end_offsets.find_offsets_at(asked, _EARLIEST)
            share.go_on()
            now_ms = time.monotonic_ns() // 1_000_000
            for place in asked:
                end = latest.get(place)
                ends[place] = Ends(earliest.get(place), end)
                if end is not None:
                    self._times.add(self._see(place), end, now_ms)
            await share.rest()
        look.ends.update(ends)
        for group_id, rows in batch.items():
            look.groups[group_id] = await self._judge(look, group_id, rows, ends, share)

    async def _judge(
        self,
        look: _Look,
        group_id: GroupId,
        rows: Sequence[Committed],
        ends: Mapping[Place, Ends],
        share: LoopShare,
    ) -> GroupLag:
        before = self._windows.get(group_id, {})
        windows = look.windows[group_id] = {}
        judged: list[PartitionLag] = []
        of_topics: dict[TopicName, Summing] = {}
        for begin in range(0, len(rows), _SLICE):
            now = _Now(time.time_ns() // 1_000_000, time.monotonic_ns() // 1_000_000)
            for row in rows[begin : begin + _SLICE]:
                place = row.topic, row.partition
                window = windows[place] = before.get(place) or CommitWindow()
                found = self._judge_row(row, ends.get(place, UNKNOWN_ENDS), window, now)
                judged.append(found)
                summing = of_topics.get(row.topic)
                if summing is None:
                    summing = of_topics[row.topic] = Summing()
                summing.add(found)
            await share.rest()
        of_group = Summing()
        for summing in of_topics.values():
            of_group.add_all(summing)
        return GroupLag(
            tuple(judged),
            of_group.compute_sums(),
            {topic: summing.compute_sums() for topic, summing in of_topics.items()},
            of_group.compute_status(),
        )

    def _judge_row(
        self, row: Committed, ends: Ends, window: CommitWindow, now: _Now
    ) -> PartitionLag:
        topic, partition, offset, at_ms = row
        lag, ahead = compute_lag(offset, ends)
        lag_ms, rule = None, None
        if lag is not None and ends.end is not None:
            window.see(offset, at_ms, lag, now.wall_ms)
            if lag:
                commits = window.commits()
                rule = find_rule(commits, lag, now.wall_ms, self._limits.least_span_ms)
                lag_ms = self._times.compute_lag_ms(
                    self._see((topic, partition)), ends.end - lag, ends.end, now.monotonic_ms
                )
            else:
                rule, lag_ms = Rule.NO_LAG, 0
        return PartitionLag(
            topic, partition, offset, at_ms, ends.end, lag, ahead, lag_ms, rule, window
        )

    def _see(self, place: Place) -> Seen:
        """The partition by the id of its topic: one made again under the name is another."""
        topic, partition = place
        return self._find_topic_id(topic) or topic, partition


async def _collect(batch: Mapping[GroupId, Sequence[Committed]], share: LoopShare) -> list[Place]:
    """The partitions, each once, and those of a topic together."""
    places: dict[Place, None] = {}
    for rows in batch.values():
        for number, row in enumerate(rows, 1):
            places[row.topic, row.partition] = None
            if number % BATCH == 0:
                await share.rest()
    # More are of one group, whose topics come one after another.
    return sorted(places) if len(places) <= 2 * BATCH else list(places)
