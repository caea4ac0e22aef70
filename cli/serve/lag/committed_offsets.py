"""Who tells what groups have committed: the store, or the cluster that has their offsets."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Final, Protocol

from cli.serve.lag.lag_figures import Committed
from cli.serve.lag.loop_share import LoopShare
from coordinator.runtime.api import Coordinator
from coordinator.runtime.offsets.offset_reads import read_group_offsets
from coordinator.runtime.runtime import Runtime
from model.caller import INTERNAL
from model.commands.offsets import OffsetFetch
from model.errors import ErrorCode
from model.ids import GroupId
from model.places import Place
from model.responses.offsets import OffsetFetchResponse
from storage.log_store import LogStore

SLICE: Final = 200
"""Offsets read at a time, each in some 6 µs."""


class CommittedOffsets(Protocol):
    """Tells what groups have committed."""

    def list_groups(self, shard: int) -> Sequence[GroupId]:
        """The groups of a shard that may have offsets, sorted."""

    async def read(self, group_id: GroupId, share: LoopShare, most: int) -> list[Committed]:
        """The first offsets of a group, by topic and partition. Raises ``GroupError``."""


class StoredOffsets:
    """``CommittedOffsets`` of groups whose offsets are in the store."""

    def __init__(self, runtime: Runtime, store: LogStore) -> None:
        self._runtime = runtime
        self._store = store

    def list_groups(self, shard: int) -> Sequence[GroupId]:
        return sorted(self._runtime.shards[shard].offset_groups)

    async def read(self, group_id: GroupId, share: LoopShare, most: int) -> list[Committed]:
        runtime = self._runtime
        partition = runtime.partition_of(group_id)
        stored = read_group_offsets(self._store, partition, group_id, runtime.deleted_topics)
        found: list[Committed] = []
        while len(found) < most and (taken := list(islice(stored, min(SLICE, most - len(found))))):
            found += (
                Committed(
                    each.topic, each.partition, each.value.offset, each.value.commit_timestamp
                )
                for each in taken
            )
            await share.rest()
        return found


class FetchedOffsets:
    """``CommittedOffsets`` of groups that are here, with their offsets in the cluster.

    It does not tell when they were committed.
    """

    def __init__(self, runtime: Runtime, coordinator: Coordinator) -> None:
        self._runtime = runtime
        self._coordinator = coordinator

    def list_groups(self, shard: int) -> Sequence[GroupId]:
        places = self._runtime.shards[shard].places
        return sorted(group_id for group_id, found in places.items() if found.place is Place.MUSTER)

    async def read(self, group_id: GroupId, share: LoopShare, most: int) -> list[Committed]:
        answer = await self._coordinator.call(OffsetFetch(INTERNAL, group_id, None))
        assert isinstance(answer, OffsetFetchResponse)
        await share.rest()
        rows = (
            Committed(topic.name, row.partition, row.offset, None)
            for topic in sorted(answer.topics, key=lambda topic: topic.name or "")
            for row in topic.partitions
            if topic.name is not None and row.error is ErrorCode.NONE and row.offset >= 0
        )
        found: list[Committed] = []
        while len(found) < most and (taken := list(islice(rows, min(SLICE, most - len(found))))):
            found += taken
            await share.rest()
        return found
