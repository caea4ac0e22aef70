"""Compares the topics that the server was started with to those that exist."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from cli.errors import CommandError, ExitCode
from model.caller import INTERNAL
from model.commands.command import TopicCommand
from model.commands.topics import CreateTopic, GrowTopic, SetTopicRacks
from model.ids import TopicId, TopicName
from model.topics import TopicImage
from wording.topics import TopicSpec


def compute_topic_changes(image: TopicImage, specs: Sequence[TopicSpec]) -> list[TopicCommand]:
    """The changes that create or grow topics as given; they never remove anything.

    Raises ``CommandError`` if a topic has more partitions than are given.
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
                f"topic {name} has {topic.partitions} partitions and cannot be reduced to "
                f"{spec.partitions}: give {topic.partitions} or more, or delete the topic",
                ExitCode.PRECONDITION,
            )
        elif topic.partitions < spec.partitions:
            changes.append(GrowTopic(INTERNAL, name, spec.partitions))
        if spec.racks is not None and spec.racks != (topic.racks if topic is not None else ()):
            changes.append(SetTopicRacks(INTERNAL, name, spec.racks))
    return changes


def change_name(change: TopicCommand) -> str:
    """The name of the topic that a change is for."""
    assert isinstance(change, CreateTopic | GrowTopic | SetTopicRacks)
    return change.name
