"""The topics of a cluster are followed: what changes there is published here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

from gateway.codec.client_frames import ClientRequest
from model.errors import ErrorCode
from model.ids import TopicId, TopicName
from model.topics import Topic, TopicImage, compute_image_with, compute_image_without
from tests.support.waiting import until
from upstream.cluster.cluster import ClusterBroker, ClusterUnreachable
from upstream.topics.cluster_topics import ClusterTopics, read_all_topics
from upstream.topics.read_topics import TopicChanges


def make_id(name: str) -> TopicId:
    return TopicId(name.encode().ljust(16, b"\0"))


class TopicsCluster:
    """What is asked of ``upstream.cluster.cluster.Cluster``: Metadata."""

    def __init__(self, **partitions: int) -> None:
        self.partitions = partitions
        self.brokers = {1: ClusterBroker(1, "127.0.0.1", 9_092, "a")}
        self.is_reachable = True
        self.asked: list[Collection[str] | None] = []

    async def ask(self, request: ClientRequest, **more: Any) -> Any:
        topics = request.fields["topics"]
        self.asked.append(None if topics is None else [topic["name"] for topic in topics])
        await asyncio.sleep(0)
        if not self.is_reachable:
            raise ClusterUnreachable("no broker answers")
        names = self.partitions if topics is None else [topic["name"] for topic in topics]
        rows = [self._describe(name) for name in names]
        return SimpleNamespace(topics=rows, brokers=[1])

    def _describe(self, name: str) -> Any:
        count = self.partitions.get(name, 0)
        return SimpleNamespace(
            name=name,
            topic_id=make_id(name),
            error_code=0 if count else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            partitions=[
                SimpleNamespace(partition_index=number, replica_nodes=[1])
                for number in range(count)
            ],
        )


class Followed:
    """The image that changes are published to."""

    def __init__(self, cluster: TopicsCluster, subscribed: Collection[str] = ()) -> None:
        self.image = TopicImage()
        self._subscribed = {TopicName(name) for name in subscribed}
        self.topics = ClusterTopics(
            cluster,  # type: ignore[arg-type]  # it has what is asked
            image=lambda: self.image,
            publish=self._publish,
            find_subscribed=self._find_subscribed,
            interval_ms=1,
        )

    @property
    def partitions(self) -> dict[str, int]:
        return {str(topic.name): topic.partitions for topic in self.image.by_name.values()}

    async def _publish(self, changes: TopicChanges) -> None:
        for topic in changes.changed:
            self.image = compute_image_with(self.image, topic)
        for name in changes.gone:
            self.image = compute_image_without(self.image, name)

    async def _find_subscribed(self) -> Collection[TopicName]:
        return self._subscribed


@asynccontextmanager
async def follow(
    cluster: TopicsCluster, subscribed: Collection[str] = (), all_took_s: float = 0.0
) -> AsyncIterator[Any]:
    followed = Followed(cluster, subscribed)
    await followed.topics.read_all()
    followed.topics.start(all_took_s)
    yield followed
    await followed.topics.stop()


async def test_all_topics_are_read_at_once() -> None:
    topics = await read_all_topics(TopicsCluster(t=2))  # type: ignore[arg-type]
    assert topics == (Topic(TopicName("t"), make_id("t"), 2, (("a",), ("a",))),)


async def test_topics_that_come_grow_and_go_are_published() -> None:
    cluster = TopicsCluster(a=1, b=1)
    async with follow(cluster) as followed:
        assert followed.partitions == {"a": 1, "b": 1}
        cluster.partitions = {"b": 3, "c": 1}
        await until(lambda: followed.partitions == {"b": 3, "c": 1})


async def test_a_cluster_that_is_silent_for_a_while_loses_no_topic() -> None:
    cluster = TopicsCluster(a=1)
    async with follow(cluster) as followed:
        cluster.is_reachable = False
        asked = len(cluster.asked)
        await until(lambda: len(cluster.asked) > asked + 3)
        assert followed.partitions == {"a": 1}
        cluster.is_reachable = True
        cluster.partitions = {"a": 2}
        await until(lambda: followed.partitions == {"a": 2})


async def test_subscribed_topics_are_read_while_all_of_them_take_long() -> None:
    cluster = TopicsCluster(a=1, b=1)
    async with follow(cluster, ("a",), all_took_s=1) as followed:
        cluster.partitions = {"a": 2, "b": 2}
        await until(lambda: followed.partitions == {"a": 2, "b": 1})
        assert cluster.asked[0] is None
        assert set(map(str, cluster.asked[1:])) == {"['a']"}
