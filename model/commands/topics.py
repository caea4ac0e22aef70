"""Commands of Muster's own topic catalogue."""

from __future__ import annotations

from model.caller import Caller
from model.ids import TopicId, TopicName
from model.topics import Topic
from model.value import value


@value
class CreateTopic:
    """Create a topic. The runtime generates ``topic_id``."""

    caller: Caller
    name: TopicName
    topic_id: TopicId
    partitions: int
    validate_only: bool = False


@value
class GrowTopic:
    """Raise the partition count of a topic to ``partitions``."""

    caller: Caller
    name: TopicName
    partitions: int
    validate_only: bool = False


@value
class SetTopicRacks:
    """Set the racks of the replicas of each partition, in partition order.

    The racks of partitions with an empty entry, or missing at the end, are unknown.
    """

    caller: Caller
    name: TopicName
    racks: tuple[tuple[str, ...], ...]
    validate_only: bool = False


@value
class DeleteTopic:
    """Delete a topic, by name or by id, with all offsets committed for it."""

    caller: Caller
    name: TopicName | None
    topic_id: TopicId | None = None


@value
class ReplaceTopics:
    """Topics of a catalogue elsewhere have changed: the cluster's, for a Muster in front of it.

    They are kept in memory alone. ``changed`` are new or different; one with another id than
    before was made again.
    """

    caller: Caller
    changed: tuple[Topic, ...]
    gone: tuple[TopicName, ...] = ()


@value
class ForgetDeletedTopic:
    """Every offset of a deleted topic has been deleted."""

    caller: Caller
    topic_id: TopicId
