"""Front ends have the topic image that a response refers to when they get it."""

from __future__ import annotations

from coordinator.runtime.api import Answer
from model.caller import INTERNAL
from model.commands.topics import CreateTopic
from model.ids import TopicName
from model.responses.consumer import ConsumerGroupHeartbeatResponse
from tests.support.virtual.server import VirtualServer, make_topic_id

FOO = TopicName("foo")


def test_a_join_of_the_flush_that_makes_its_topic_durable_has_names() -> None:
    """Bug: the response left before the new image was published; its partitions had no topic."""
    server = VirtualServer({"bar": 1})
    assigned: list[bool] = []

    def look(answer: Answer) -> None:
        assert isinstance(answer, ConsumerGroupHeartbeatResponse)
        assert answer.assignment
        by_id = {topic.topic_id for topic in server.runtime.image.by_name.values()}
        assigned.append(all(part.topic_id in by_id for part in answer.assignment))

    server.submit(CreateTopic(INTERNAL, FOO, make_topic_id("foo", 0), 2))
    server.runtime.submit(server.join_command("g", "a", ["foo"]), look)
    server.settle()
    assert assigned == [True]
