"""Follows the topics of the cluster: reads its Metadata, and publishes what has changed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection
from typing import Final, NamedTuple, TypeAlias

import structlog

from model.ids import TopicName
from model.topics import Topic, TopicImage
from upstream.cluster.cluster import Cluster, ClusterUnreachable
from upstream.topics.read_topics import (
    TOPICS_PER_REQUEST,
    TopicChanges,
    compute_changes,
    compute_missing,
    compute_topics,
    make_metadata_request,
)

log = structlog.get_logger("muster.upstream")

ALL_SHARE: Final = 0.05
"""How much of the time may go into reading all topics; they are read less often then."""
ALL_INTERVAL_MAX_S: Final = 10.0

SLICE: Final = 50
"""Topics that are looked at in one iteration, each of which may have thousands of partitions."""

Publish: TypeAlias = Callable[[TopicChanges], Awaitable[None]]


class Seen(NamedTuple):
    """The topics that there are, and those that were asked for and are not there."""

    found: dict[TopicName, Topic]
    missing: frozenset[TopicName]


async def read_all_topics(cluster: Cluster) -> tuple[Topic, ...]:
    """All topics that exist. Raises ``ClusterUnreachable``."""
    return tuple((await _ask(cluster, None)).found.values())


async def _ask(cluster: Cluster, names: list[TopicName] | None) -> Seen:
    """Topics by name, or all; raises ``ClusterUnreachable``."""
    response = await cluster.ask(make_metadata_request(names))
    if not response.brokers:
        # It has just started, and has not heard of any topic yet.
        raise ClusterUnreachable("a broker does not know the cluster's brokers yet")
    racks = {node_id: broker.rack for node_id, broker in cluster.brokers.items()}
    found: dict[TopicName, Topic] = {}
    for count, topic in enumerate(compute_topics(response, racks), 1):
        found[topic.name] = topic
        if count % SLICE == 0:
            await asyncio.sleep(0)
    return Seen(found, frozenset() if names is None else compute_missing(response))


class ClusterTopics:
    """Reads all topics each ``interval_ms``, or less often if that takes long.

    In between those that groups here subscribe to (``find_subscribed``) are read each
    ``interval_ms``. ``publish`` makes changes known to the coordinator, whose image is ``image()``.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        image: Callable[[], TopicImage],
        publish: Publish,
        find_subscribed: Callable[[], Awaitable[Collection[TopicName]]],
        interval_ms: int,
    ) -> None:
        self._cluster = cluster
        self._image = image
        self._publish = publish
        self._find_subscribed = find_subscribed
        self._interval_s = interval_ms / 1_000
        self._task: asyncio.Task[None] | None = None
        self._all_at = 0.0

    def start(self, all_took_s: float) -> None:
        """Follow the topics. All have just been read (``read_all_topics``), in so much time."""
        self._plan_all(time.monotonic() - all_took_s)
        self._task = asyncio.get_running_loop().create_task(self._follow())

    async def stop(self) -> None:
        """Follow no longer."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(self._interval_s)
            try:
                if time.monotonic() >= self._all_at:
                    await self.read_all()
                else:
                    await self._read_named(sorted(await self._find_subscribed()))
            except ClusterUnreachable as cause:
                log.debug("topics_not_read", cause=str(cause))
            except Exception:
                # What one answer says must not end that topics are followed.
                log.exception("reading_topics_failed")

    async def read_all(self) -> None:
        """Read all topics, and publish what has changed. Raises ``ClusterUnreachable``."""
        began = time.monotonic()
        seen = await self._read(None)
        # Nor are those among them that may not be seen, or of which nothing certain is known.
        absent = self._image().by_name.keys() - seen
        await self._read_named(sorted(absent))
        self._plan_all(began)

    def _plan_all(self, began: float) -> None:
        pause_s = min((time.monotonic() - began) / ALL_SHARE, ALL_INTERVAL_MAX_S)
        self._all_at = began + max(self._interval_s * 0.9, pause_s)

    async def _read_named(self, names: list[TopicName]) -> None:
        for first in range(0, len(names), TOPICS_PER_REQUEST):
            await self._read(names[first : first + TOPICS_PER_REQUEST])

    async def _read(self, names: list[TopicName] | None) -> set[TopicName]:
        """Read and publish; the topics that there are. Raises ``ClusterUnreachable``."""
        seen = await _ask(self._cluster, names)
        changes = compute_changes(self._image(), seen.found.values(), seen.missing)
        await self._publish_changes(changes)
        return set(seen.found)

    async def _publish_changes(self, changes: TopicChanges) -> None:
        if changes.changed or changes.gone:
            await self._publish(changes)
