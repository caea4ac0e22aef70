"""Commits and fetches of members on their way, made in the cluster with the members' own ids."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from gateway.codec.client_frames import ClientRequest
from model.commands.offsets import OffsetCommit, OffsetFetch, TopicOffsets, TopicToFetch
from model.errors import (
    CoordinatorNotAvailable,
    DescriptionFailed,
    ErrorCode,
)
from model.ids import InstanceId, TopicName
from model.responses.offsets import (
    FetchedOffset,
    FetchedTopic,
    OffsetCommitResponse,
    OffsetFetchResponse,
    PartitionResult,
    TopicResult,
)
from model.topics import TopicImage
from upstream.cluster.cluster import Cluster, ClusterUnreachable
from upstream.hooks import SentinelIdentity
from upstream.offsets.offset_requests import (
    FetchedOffsets,
    Row,
    make_commit,
    make_fetch,
    read_codes,
    read_offsets,
)

PASS_TIMEOUT_MS: Final = 10_000
_NOBODY: Final = -1


class PassedOffsets:
    """Asks the cluster in a member's name. The topics are those that the server knows."""

    def __init__(self, cluster: Cluster, image: Callable[[], TopicImage]) -> None:
        self._cluster = cluster
        self._image = image

    async def commit(self, command: OffsetCommit) -> OffsetCommitResponse:
        """Commit. Raises ``CoordinatorNotAvailable``; then the commit may have been made."""
        names = [self._find_name(topic) for topic in command.topics]
        rows = [
            Row(name, *row)
            for name, topic in zip(names, command.topics, strict=True)
            if name is not None
            for row in topic.offsets.rows()
        ]
        epoch = _NOBODY if command.member_epoch is None else command.member_epoch
        identity = SentinelIdentity(command.member_id, InstanceId(""), epoch)
        request = make_commit(command.group_id, identity, rows)
        request = replace(
            request, fields={**request.fields, "group_instance_id": command.instance_id}
        )
        response = await self._ask(command.group_id, request) if rows else None
        codes = {} if response is None else read_codes(response)
        missing = ErrorCode.UNKNOWN_SERVER_ERROR
        return OffsetCommitResponse(
            tuple(
                TopicResult(
                    topic.name if name is None else name,
                    topic.topic_id,
                    tuple(
                        PartitionResult(
                            int(partition),
                            ErrorCode.UNKNOWN_TOPIC_ID
                            if name is None
                            else codes.get((name, int(partition)), missing),
                        )
                        for partition in topic.partitions
                    ),
                )
                for name, topic in zip(names, command.topics, strict=True)
            )
        )

    async def fetch(self, command: OffsetFetch) -> OffsetFetchResponse:
        """Fetch. Raises a ``GroupError``."""
        topics = command.topics
        wanted = None
        if topics is not None:
            named = ((self._find_name(topic), topic) for topic in topics)
            wanted = {name: topic.partitions for name, topic in named if name is not None}
        request = make_fetch(command.group_id, wanted, require_stable=command.require_stable)
        found = read_offsets(command.group_id, await self._ask(command.group_id, request))
        if found.error is not ErrorCode.NONE:
            raise DescriptionFailed("The cluster refused to fetch offsets.", found.error)
        if topics is None:
            return OffsetFetchResponse(command.group_id, self._compute_all(found))
        fetched = tuple(self._compute_fetched(topic, found) for topic in topics)
        return OffsetFetchResponse(command.group_id, fetched)

    async def _ask(self, group_id: str, request: ClientRequest) -> Any:
        try:
            return await self._cluster.ask_coordinator(
                group_id,
                request,
                timeout_ms=PASS_TIMEOUT_MS,
            )
        except ClusterUnreachable as cause:
            raise CoordinatorNotAvailable(f"The cluster did not answer: {cause}") from None

    def _find_name(self, topic: TopicOffsets | TopicToFetch) -> TopicName | None:
        """The name of the topic that the id is of, if there is one: that one was authorized."""
        if topic.topic_id is None:
            return topic.name
        known = self._image().by_id.get(topic.topic_id)
        return None if known is None else known.name

    def _compute_all(self, found: FetchedOffsets) -> tuple[FetchedTopic, ...]:
        by_topic: dict[TopicName, list[int]] = {}
        for name, partition in found.rows:
            by_topic.setdefault(name, []).append(partition)
        image = self._image().by_name
        return tuple(
            self._compute_fetched(
                TopicToFetch(
                    name, known.topic_id if (known := image.get(name)) else None, tuple(numbers)
                ),
                found,
            )
            for name, numbers in by_topic.items()
        )

    def _compute_fetched(self, topic: TopicToFetch, found: FetchedOffsets) -> FetchedTopic:
        name = self._find_name(topic)
        return FetchedTopic(
            name,
            topic.topic_id,
            tuple(_compute_offset(name, number, found) for number in topic.partitions),
        )


def _compute_offset(name: TopicName | None, partition: int, found: FetchedOffsets) -> FetchedOffset:
    if name is None:
        return FetchedOffset(partition, -1, None, "", ErrorCode.UNKNOWN_TOPIC_ID)
    row = found.rows.get((name, partition))
    if row is None:
        return FetchedOffset(partition, -1, None, "")
    epoch = None if row.leader_epoch < 0 else row.leader_epoch
    return FetchedOffset(partition, row.offset, epoch, row.metadata, row.error)
