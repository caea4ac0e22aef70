"""A runtime, ends of partitions that a test sets, and looks at the lag."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cli.serve.lag.committed_offsets import CommittedOffsets, StoredOffsets
from cli.serve.lag.lag_figures import GroupLag, LagFigures
from cli.serve.lag.lag_refresh import LagLimits, LagRefresh
from coordinator.runtime.runtime import Runtime
from coordinator.service.ends.end_offset_times import EndOffsetTimes
from coordinator.service.ends.end_offsets import EndOffsets
from model.caller import Caller
from model.commands.offsets import OffsetCommit, TopicOffsets
from model.commands.topics import CreateTopic
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, MemberId, TopicId, TopicName
from model.log.commit_records import make_offset_columns
from tests.support.memory import MemoryLogStore

CALLER = Caller("User:ANONYMOUS", "client", "/127.0.0.1")


class Ends:
    """``EndOffsets`` of what a test says: (start, end) of each partition."""

    def __init__(self) -> None:
        self.places: dict[tuple[str, int], tuple[int, int]] = {}
        self.asked: list[int] = []

    async def find_end_offsets(
        self, partitions: Sequence[tuple[TopicName, int]]
    ) -> Mapping[tuple[TopicName, int], int]:
        return await self.find_offsets_at(partitions, -1)

    async def find_offsets_at(
        self, partitions: Sequence[tuple[TopicName, int]], timestamp_ms: int
    ) -> Mapping[tuple[TopicName, int], int]:
        self.asked.append(len(partitions))
        side = {-2: 0, -1: 1}[timestamp_ms]
        return {place: self.places[place][side] for place in partitions if place in self.places}


class LagRig:
    """Looks are made one by one."""

    def __init__(self, runtime: Runtime, store: MemoryLogStore) -> None:
        self.runtime = runtime
        self.store = store
        self.ends = Ends()
        self.times = EndOffsetTimes()
        self.refresh = self.make_refresh()

    @classmethod
    async def start(cls, **topics: int) -> LagRig:
        store = MemoryLogStore(4)
        runtime = Runtime(store, CoordinatorSettings())
        await runtime.start()
        await runtime.loaded()
        for name, partitions in topics.items():
            topic_id = TopicId(name.encode().ljust(16, b"."))
            await runtime.call(CreateTopic(CALLER, TopicName(name), topic_id, partitions))
        return cls(runtime, store)

    def make_refresh(
        self,
        partitions_max: int = 1_000,
        committed: CommittedOffsets | None = None,
        ends: EndOffsets | None = None,
    ) -> LagRefresh:
        topics = self.runtime.image.by_name
        return LagRefresh(
            len(self.runtime.shards),
            committed or StoredOffsets(self.runtime, self.store),
            ends or self.ends,
            self.times,
            LagLimits(1_000, partitions_max),
            find_topic_id=lambda name: topics[name].topic_id if name in topics else None,
        )

    async def commit(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        rows = [(number, offset, -1, "") for number, offset in offsets.items()]
        told = TopicOffsets(TopicName(topic), None, make_offset_columns(rows))
        await self.runtime.call(OffsetCommit(CALLER, GroupId(group), MemberId(""), None, (told,)))

    async def look(self) -> LagFigures:
        await self.refresh.look()
        assert self.refresh.figures is not None
        return self.refresh.figures

    async def group(self, name: str) -> GroupLag:
        return (await self.look()).groups[name]
