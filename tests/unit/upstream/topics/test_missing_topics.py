"""A topic is gone only if the cluster says so by its name."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway.codec.client_frames import ClientRequest
from model.errors import ErrorCode
from model.ids import TopicName
from model.topics import Topic, TopicImage, compute_image_of
from tests.support.virtual.server import make_topic_id
from upstream.cluster.cluster import Cluster, ClusterBroker, ClusterUnreachable
from upstream.topics.cluster_topics import ClusterTopics
from upstream.topics.read_topics import TopicChanges

NONE, UNKNOWN = ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
REFUSED, ELECTING = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.LEADER_NOT_AVAILABLE


class Scripted:
    """Answers Metadata: what of each topic, by name; those that are refused only by name."""

    def __init__(self) -> None:
        self.said = {"a": NONE, "b": NONE}
        self.knows_brokers = True
        self.brokers = {1: ClusterBroker(1, "127.0.0.1", 9092)}

    async def ask(self, request: ClientRequest, **_: object) -> Any:
        wanted = request.fields["topics"]
        said = self.said if self.knows_brokers else {}
        if wanted is None:
            shown = {name: code for name, code in said.items() if code is not REFUSED}
        else:
            shown = {each["name"]: said.get(each["name"], UNKNOWN) for each in wanted}
        rows = [_make_row(name, code) for name, code in shown.items()]
        return SimpleNamespace(topics=rows, brokers=[1] if self.knows_brokers else [])


def _make_row(name: str, code: ErrorCode) -> Any:
    partition = SimpleNamespace(partition_index=0, replica_nodes=[1])
    return SimpleNamespace(
        name=name,
        topic_id=make_topic_id(name),
        error_code=code,
        partitions=[partition] if code is NONE else [],
    )


class Rig:
    """The topics that are published."""

    def __init__(self) -> None:
        self.cluster = Scripted()
        self.image = TopicImage()
        self.topics = ClusterTopics(
            cast(Cluster, self.cluster),
            image=lambda: self.image,
            publish=self._publish,
            find_subscribed=self._find_subscribed,
            interval_ms=3_600_000,
        )

    async def _publish(self, changes: TopicChanges) -> None:
        known: dict[TopicName, Topic] = {**self.image.by_name}
        known.update({topic.name: topic for topic in changes.changed})
        for name in changes.gone:
            del known[name]
        self.image = compute_image_of(tuple(known.values()))

    async def _find_subscribed(self) -> list[TopicName]:
        return []

    async def read(self) -> set[str]:
        """Read all topics once."""
        await self.topics.read_all()
        return set(map(str, self.image.by_name))


async def test_a_topic_that_is_deleted_is_gone() -> None:
    rig = Rig()
    assert await rig.read() == {"a", "b"}
    del rig.cluster.said["b"]
    assert await rig.read() == {"a"}


async def test_a_broker_that_has_just_started_takes_no_topics_away() -> None:
    rig = Rig()
    await rig.read()
    rig.cluster.knows_brokers = False
    with pytest.raises(ClusterUnreachable):
        await rig.read()
    assert set(rig.image.by_name) == {"a", "b"}


@pytest.mark.parametrize("code", [REFUSED, ELECTING])
async def test_a_topic_is_gone_only_if_the_cluster_says_so(code: ErrorCode) -> None:
    rig = Rig()
    await rig.read()
    rig.cluster.said["b"] = code
    assert await rig.read() == {"a", "b"}
