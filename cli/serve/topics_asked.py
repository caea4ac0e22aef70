"""The topics that a server is started with: what makes of those that are there those asked for."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from cli.errors import CommandError, ExitCode
from cli.topic_spec import TopicSpec
from model.commands import INTERNAL, CreateTopic, GrowTopic, SetTopicRacks, TopicCommand
from model.ids import TopicId, TopicName
from model.topics import TopicImage


def compute_topic_changes(image: TopicImage, specs: Sequence[TopicSpec]) -> list[TopicCommand]:
    """What makes the topics that are there those asked for, nothing being taken away.

    Raises ``CommandError`` where a topic has more partitions than it is asked for with.
    """
    changes: list[TopicCommand] = []
    for spec in specs:
        name = TopicName(spec.name)
        topic = image.by_name.get(name)
        if topic is None:
            topic_id = TopicId(secrets.token_bytes(16))
            changes.append(CreateTopic(INTERNAL, name, topic_id, spec.partitions))
        elif topic.partitions > spec.partitions:
            raise CommandError(
                f"topic {name} has {topic.partitions} partitions and cannot shrink to "
                f"{spec.partitions}: ask for {topic.partitions} or more, or delete it",
                ExitCode.PRECONDITION,
            )
        elif topic.partitions < spec.partitions:
            changes.append(GrowTopic(INTERNAL, name, spec.partitions))
        if spec.racks is not None and spec.racks != (topic.racks if topic is not None else ()):
            changes.append(SetTopicRacks(INTERNAL, name, spec.racks))
    return changes


def change_name(change: TopicCommand) -> str:
    """The topic that a change is about."""
    assert isinstance(change, CreateTopic | GrowTopic | SetTopicRacks)
    return change.name
