"""Installation of resolved regular expressions.

The runtime matches the topic names asynchronously. As in Kafka's
``handleRegularExpressionsResult``, results for expressions that no member uses any more are
dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field

from coordinator.core.state.consumer.consumer_group import ConsumerGroup, regex_of
from coordinator.core.state.group_epochs import compute_epoch_bump, compute_target_effect
from coordinator.core.state.metadata_hash import (
    TopicHashes,
    compute_metadata_hash,
    drop_gone_hashes,
)
from coordinator.core.state.outcome import Effect, NoteEpochCauses, Outcome
from coordinator.core.state.shard import Shard
from model.ids import GroupId, TopicName
from model.log.records import (
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    Record,
)
from model.past.causes import Cause, CauseKind
from model.responses.response import Done
from model.topics import TopicImage


@dataclass(frozen=True, slots=True, eq=False)
class InstallRegexes:
    """The result of ``ResolveRegexes``: the topics of each regular expression.

    ``version`` and ``timestamp_ms`` (wall) are those of the resolution: the version of the topic
    image, and its time. ``topic_hashes`` are the hashes of the matched topics for the cache of
    ``compute_metadata_hash``: with very many topics they take longer than everything else.
    """

    group_id: GroupId
    topics: Mapping[str, frozenset[TopicName]]
    version: int
    timestamp_ms: int
    topic_hashes: TopicHashes = field(default_factory=dict)


def handle_install_regexes(shard: Shard, command: InstallRegexes) -> Outcome:
    """Write the topics of each expression, and bump the group epoch if subscriptions change.

    Writes nothing if no expression has other topics than before.
    """
    group = shard.consumer_groups.get(command.group_id)
    if group is None:
        return Outcome(response=Done())
    resolved = {regex: topics for regex, topics in command.topics.items() if regex in group.regexes}
    if all(group.resolved_regexes.get(regex) == topics for regex, topics in resolved.items()):
        return Outcome(response=Done())
    records = [_record(command, regex, topics) for regex, topics in resolved.items()]
    records += _orphan_tombstones(group)
    shard.soft.topic_hashes.update(command.topic_hashes)
    drop_gone_hashes(shard.image, shard.soft.topic_hashes)
    names = _names_after(group, resolved)
    if not _needs_epoch(shard, group, resolved, names):
        return Outcome(records=tuple(records), response=Done())
    records += compute_epoch_bump(shard, group, command.group_id, names)
    effects: tuple[Effect, ...] = (
        compute_target_effect(shard, group, command.group_id),
        NoteEpochCauses(command.group_id, (_compute_cause(group, resolved),)),
    )
    return Outcome(records=tuple(records), response=Done(), effects=effects)


def _record(command: InstallRegexes, regex: str, topics: frozenset[TopicName]) -> Record:
    return Record(
        ConsumerGroupRegularExpressionKey(command.group_id, regex),
        ConsumerGroupRegularExpressionValue(
            tuple(sorted(topics)), command.version, command.timestamp_ms
        ),
    )


def _compute_cause(group: ConsumerGroup, resolved: Mapping[str, frozenset[TopicName]]) -> Cause:
    """The first expression that has other topics than before, and the first of those topics."""
    for regex, topics in resolved.items():
        before = group.resolved_regexes.get(regex, frozenset())
        if topics != before:
            name = min(topics ^ before)
            return Cause(CauseKind.REGEX_RESOLVED, reason=regex, topic_name=name)
    return Cause(CauseKind.REGEX_RESOLVED)


def _orphan_tombstones(group: ConsumerGroup) -> list[Record]:
    """The tombstones of expressions from an imported log that no member uses."""
    return [
        Record(ConsumerGroupRegularExpressionKey(group.group_id, regex), None)
        for regex in group.resolved_regexes
        if regex not in group.regexes
    ]


def _names_after(
    group: ConsumerGroup, resolved: Mapping[str, frozenset[TopicName]]
) -> Set[TopicName]:
    names = set(group.subscribed_names)
    for regex in group.regexes:
        topics = resolved.get(regex)
        names |= group.resolved_regexes.get(regex, frozenset()) if topics is None else topics
    return names


def _needs_epoch(
    shard: Shard,
    group: ConsumerGroup,
    resolved: Mapping[str, frozenset[TopicName]],
    names: Set[TopicName],
) -> bool:
    for regex, topics in resolved.items():
        before = group.resolved_regexes.get(regex)
        if before is None and not topics:
            if _has_stale_target(shard, group, regex):
                return True
        elif _existing(shard.image, before or frozenset()) != _existing(shard.image, topics):
            return True
    metadata_hash = compute_metadata_hash(names, shard.image, shard.soft.topic_hashes)
    return metadata_hash != group.metadata_hash


def _existing(image: TopicImage, topics: frozenset[TopicName]) -> set[TopicName]:
    """The topics that exist; a deletion changes the metadata hash and so has its own bump."""
    return {topic for topic in topics if topic in image.by_name}


def _has_stale_target(shard: Shard, group: ConsumerGroup, regex: str) -> bool:
    """Whether a member with this expression has target partitions it no longer subscribes to."""
    for member in group.members():
        if member.target and regex_of(member.metadata) == regex:
            subscribed = group.subscribed_topic_indexes(member.metadata, shard.image)
            if not group.numbers.topic_indexes_of(member.target) <= subscribed:
                return True
    return False
