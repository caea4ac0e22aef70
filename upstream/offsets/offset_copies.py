"""Copies a group's offsets from the cluster and back, for ``upstream.offsets.store=muster``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from coordinator.runtime.api import Coordinator
from model.caller import INTERNAL
from model.commands.offsets import OffsetCommit, OffsetFetch, TopicOffsets
from model.errors import ClusterRefused, CoordinatorLoadInProgress, ErrorCode
from model.ids import GroupId, MemberId, TopicName
from model.log.commit_records import OffsetRow, make_offset_columns
from model.responses.offsets import OffsetCommitResponse, OffsetFetchResponse
from upstream.cluster.cluster import Cluster
from upstream.hooks import Takeovers
from upstream.offsets.commit_requests import CommitRequests
from upstream.offsets.offset_fetches import ask_offsets
from upstream.offsets.offset_requests import Row
from upstream.offsets.offsets import Offsets

PART: Final = 1_000
PART_BYTES: Final = 300_000
"""Offsets that are committed in one step, and the bytes of their metadata."""

_GONE: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})


class OffsetCopies:
    """Copies offsets. Raises ``GroupError``; what was copied by then may be copied again."""

    def __init__(
        self,
        coordinator: Coordinator,
        cluster: Cluster,
        takeovers: Takeovers,
        offsets: Offsets,
        *,
        now_ms: Callable[[], int],
        timeout_ms: int = 30_000,
    ) -> None:
        self._coordinator = coordinator
        self._cluster = cluster
        self._offsets = offsets
        self._timeout_ms = timeout_ms
        self._requests = CommitRequests(coordinator, cluster, takeovers, now_ms, timeout_ms)

    async def copy_in(self, group_id: GroupId) -> int:
        """Commit here what the cluster has; the number of offsets.

        Before the group is adopted, as nobody is a member of it here then, and once the sentinel is
        in, as nobody commits in the cluster any more. Offsets of a transaction that is not over yet
        raise ``CoordinatorLoadInProgress``. Those of topics that are gone are left out.
        """
        found = await ask_offsets(self._cluster, group_id, None, True, self._timeout_ms)
        rows = []
        for (topic, partition), row in found.rows.items():
            if row.error is ErrorCode.UNSTABLE_OFFSET_COMMIT:
                raise CoordinatorLoadInProgress(f"A transaction of group {group_id} is not over.")
            if row.error is ErrorCode.NONE and row.offset >= 0:
                rows.append(Row(topic, partition, row.offset, row.leader_epoch, row.metadata))
        copied = 0
        for part in _split(rows):
            command = OffsetCommit(INTERNAL, group_id, MemberId(""), None, _make_topics(part))
            answer = await self._coordinator.call(command)
            assert isinstance(answer, OffsetCommitResponse)
            said = [each.error for topic in answer.topics for each in topic.partitions]
            self._check(group_id, said)
            copied += said.count(ErrorCode.NONE)
        return copied

    async def copy_out(self, group_id: GroupId) -> int:
        """Commit in the cluster what is here; the number of offsets.

        While the sentinel is in. No commits of the group are accepted here from now on.
        """
        await self._offsets.close(group_id)
        answer = await self._coordinator.call(OffsetFetch(INTERNAL, group_id, None))
        assert isinstance(answer, OffsetFetchResponse)
        rows = [
            Row(
                topic.name,
                each.partition,
                each.offset,
                -1 if each.leader_epoch is None else each.leader_epoch,
                each.metadata,
            )
            for topic in answer.topics
            if topic.name is not None
            for each in topic.partitions
            if each.offset >= 0
        ]
        copied = 0
        for part in _split(rows):
            codes = await self._requests.commit(group_id, part)
            said = [codes.get(row.spot, ErrorCode.UNKNOWN_SERVER_ERROR) for row in part]
            self._check(group_id, said)
            copied += said.count(ErrorCode.NONE)
        return copied

    def _check(self, group_id: GroupId, said: Sequence[ErrorCode]) -> None:
        """Raise an error for an offset that was not copied, though its topic exists."""
        for code in said:
            if code is not ErrorCode.NONE and code not in _GONE:
                raise ClusterRefused(f"Offsets of group {group_id} cannot be copied.", code)


def _split(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    part: list[Row] = []
    size = 0
    for row in rows:
        if len(part) == PART or size > PART_BYTES:
            yield part
            part, size = [], 0
        part.append(row)
        size += 3 * len(row.metadata)
    if part:
        yield part


def _make_topics(rows: Sequence[Row]) -> tuple[TopicOffsets, ...]:
    by_topic: dict[TopicName, list[OffsetRow]] = {}
    for topic, partition, offset, leader_epoch, metadata in rows:
        by_topic.setdefault(topic, []).append((partition, offset, leader_epoch, metadata))
    return tuple(
        TopicOffsets(topic, None, make_offset_columns(found)) for topic, found in by_topic.items()
    )
