"""Commits and fetches in the names of members on their way."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway.codec.client_frames import ClientRequest
from model.commands.offsets import OffsetCommit, OffsetFetch, TopicOffsets, TopicToFetch
from model.errors import ErrorCode
from model.ids import GroupId, MemberId, TopicId, TopicName
from model.log.commit_records import make_offset_columns
from model.topics import Topic, TopicImage, compute_image_with
from tests.support.virtual.server import CALLER, make_topic_id
from upstream.cluster.cluster import Cluster
from upstream.takeover.asking.passed_offsets import PassedOffsets

G = GroupId("g")
ALLOWED = Topic(TopicName("allowed"), make_topic_id("allowed"), 4)
SECRET = TopicName("secret")
UNKNOWN = TopicId(b"?" * 16)


class Noting:
    """Does what it is asked, and notes which topics were named."""

    def __init__(self) -> None:
        self.named: list[str] = []

    async def ask_coordinator(self, group_id: str, request: ClientRequest, **_: object) -> Any:
        topics = request.fields["topics"]
        self.named += [topic["name"] for topic in topics]
        row = SimpleNamespace(
            partition_index=0, committed_offset=7, metadata="", error_code=ErrorCode.NONE
        )
        found = [SimpleNamespace(name=topic["name"], partitions=[row]) for topic in topics]
        return SimpleNamespace(topics=found, error_code=ErrorCode.NONE)


@pytest.mark.parametrize(
    ("topic_id", "named", "code"),
    [
        (ALLOWED.topic_id, ["allowed"], ErrorCode.NONE),
        (UNKNOWN, [], ErrorCode.UNKNOWN_TOPIC_ID),
    ],
)
async def test_the_topic_of_the_id_is_meant_as_that_was_authorized(
    topic_id: TopicId, named: list[str], code: ErrorCode
) -> None:
    cluster = Noting()
    passed = PassedOffsets(
        cast(Cluster, cluster), lambda: compute_image_with(TopicImage(), ALLOWED)
    )
    offsets = make_offset_columns([(0, 5, -1, "")])
    commit = OffsetCommit(CALLER, G, MemberId("m"), 1, (TopicOffsets(SECRET, topic_id, offsets),))
    committed = await passed.commit(commit)
    assert [row.error for topic in committed.topics for row in topic.partitions] == [code]
    assert cluster.named == named
    cluster.named.clear()
    await passed.fetch(OffsetFetch(CALLER, G, (TopicToFetch(SECRET, topic_id, (0,)),)))
    assert cluster.named == named
