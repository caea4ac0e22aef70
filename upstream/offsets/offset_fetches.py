"""Fetches offsets from the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

from model.commands.offsets import OffsetFetch, TopicToFetch
from model.errors import (
    ClusterRefused,
    CoordinatorLoadInProgress,
    ErrorCode,
    GroupError,
)
from model.ids import GroupId, TopicId, TopicName
from model.responses.offsets import FetchedOffset, FetchedTopic, OffsetFetchResponse
from model.topics import TopicImage
from upstream.cluster.cluster import Cluster, ClusterUnreachable
from upstream.offsets.offset_requests import (
    FetchedOffsets,
    FetchedRow,
    Spot,
    make_fetch,
    read_offsets,
)
from upstream.offsets.refusals import MOVING

SLICE: Final = 1_000
"""Partitions of an answer that are built in one iteration, about 2 µs each."""


async def fetch_offsets(
    cluster: Cluster, image: TopicImage, command: OffsetFetch, timeout_ms: int
) -> OffsetFetchResponse:
    """The answer to an OffsetFetch that has been checked.

    Raises ``CoordinatorLoadInProgress`` if the cluster does not answer, which every client repeats,
    or the cluster's own error.
    """
    group_id = command.group_id
    if command.topics is None:
        found = await ask_offsets(cluster, group_id, None, command.require_stable, timeout_ms)
        return OffsetFetchResponse(group_id, await _show_all(image, found.rows))
    names = [find_name(image, wanted) for wanted in command.topics]
    asked: dict[TopicName, dict[int, None]] = {}
    for wanted, name in zip(command.topics, names, strict=True):
        if name is not None and wanted.partitions:
            asked.setdefault(name, {}).update(dict.fromkeys(wanted.partitions))
    rows: Mapping[Spot, FetchedRow] = {}
    if asked:
        found = await ask_offsets(cluster, group_id, asked, command.require_stable, timeout_ms)
        rows = found.rows
    topics = []
    for wanted, name in zip(command.topics, names, strict=True):
        topics.append(await _show_topic(image, wanted, name, rows))
    return OffsetFetchResponse(group_id, tuple(topics))


async def ask_offsets(
    cluster: Cluster,
    group_id: GroupId,
    wanted: Mapping[TopicName, Iterable[int]] | None,
    require_stable: bool,
    timeout_ms: int,
) -> FetchedOffsets:
    """The offsets in the cluster, of all partitions if ``wanted`` is ``None``."""
    request = make_fetch(group_id, wanted, require_stable=require_stable)
    try:
        response = await cluster.ask_coordinator(group_id, request, timeout_ms=timeout_ms)
    except ClusterUnreachable as error:
        raise CoordinatorLoadInProgress(f"No answer from the cluster: {error}") from None
    found = read_offsets(group_id, response)
    # Before version 2 the error of a group is that of each partition.
    refusal = compute_fetch_error({found.error, *(row.error for row in found.rows.values())})
    if refusal is not None:
        raise refusal
    return found


_PARTITION_ERRORS: Final = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }
)
"""What concerns one partition."""


def compute_fetch_error(said: set[ErrorCode]) -> GroupError | None:
    """The error of the whole fetch."""
    refused = said - _PARTITION_ERRORS
    if not refused:
        return None
    if refused & MOVING:
        return CoordinatorLoadInProgress("The cluster's coordinator of the group moves.")
    code = min(refused)
    return ClusterRefused(f"The cluster refused the fetch: {code.name}.", code)


def find_name(image: TopicImage, wanted: TopicToFetch) -> TopicName | None:
    """The name of the topic; ``None`` for an unknown id."""
    if wanted.topic_id is None:
        return wanted.name
    topic = image.by_id.get(wanted.topic_id)
    return None if topic is None else topic.name


async def _show_topic(
    image: TopicImage,
    wanted: TopicToFetch,
    name: TopicName | None,
    rows: Mapping[Spot, FetchedRow],
) -> FetchedTopic:
    if name is None:
        code = ErrorCode.UNKNOWN_TOPIC_ID
        unknown = tuple(FetchedOffset(n, -1, None, "", code) for n in wanted.partitions)
        return FetchedTopic(wanted.name, wanted.topic_id, unknown)
    shown = []
    for number in wanted.partitions:
        row = rows.get((name, number))
        if row is None:
            # To say that there is none would make the client begin anew.
            raise CoordinatorLoadInProgress(f"The cluster left out {name}-{number}.")
        shown.append(_show(number, row))
        if len(shown) % SLICE == 0:
            await asyncio.sleep(0)
    return FetchedTopic(name, wanted.topic_id or _find_id(image, name), tuple(shown))


async def _show_all(image: TopicImage, rows: Mapping[Spot, FetchedRow]) -> tuple[FetchedTopic, ...]:
    shown: dict[TopicName, list[FetchedOffset]] = {}
    for count, ((name, number), row) in enumerate(rows.items(), 1):
        shown.setdefault(name, []).append(_show(number, row))
        if count % SLICE == 0:
            await asyncio.sleep(0)
    return tuple(
        FetchedTopic(name, _find_id(image, name), tuple(found)) for name, found in shown.items()
    )


def _show(number: int, row: FetchedRow) -> FetchedOffset:
    leader_epoch = None if row.leader_epoch < 0 else row.leader_epoch
    return FetchedOffset(number, row.offset, leader_epoch, row.metadata, row.error)


def _find_id(image: TopicImage, name: TopicName) -> TopicId | None:
    topic = image.by_name.get(name)
    return None if topic is None else topic.topic_id
