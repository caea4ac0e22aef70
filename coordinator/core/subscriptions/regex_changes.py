"""Changes of regular expressions in a group: tombstones, epoch bumps, and new resolutions.

A regular expression is resolved asynchronously to the heartbeat that brings it: the member is
subscribed to its topics once ``InstallRegexes`` has written them (record type 16), and only to its
topic names until then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from coordinator.core.state.consumer.consumer_group import ConsumerGroup, regex_of
from coordinator.core.state.shard import Shard
from coordinator.core.subscriptions.regex_matching import check_regex
from model.ids import GroupId, TopicName
from model.log.records import (
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupRegularExpressionKey,
    Record,
)
from model.value import value


@value
class RegexChange:
    """A member's change of regular expression.

    ``bumps``: the group epoch must be bumped now, because the new subscription is known.
    ``resolves``: the expression is new to the group and must be resolved.
    """

    records: tuple[Record, ...] = ()
    is_changed: bool = False
    bumps: bool = False
    resolves: bool = False


_NO_CHANGE = RegexChange()


def compute_regex_change(
    shard: Shard,
    group: ConsumerGroup | None,
    group_id: GroupId,
    old: ConsumerGroupMemberMetadataValue | None,
    new: ConsumerGroupMemberMetadataValue,
) -> RegexChange:
    """The consequences of a change of metadata from ``old`` to ``new``.

    Raises ``InvalidRegularExpression`` (row C9 of tests/scenarios/README.md).
    """
    before, after = regex_of(old), regex_of(new)
    if before == after:
        return _NO_CHANGE
    counts = group.regexes if group is not None else {}
    records: list[Record] = []
    if before and counts.get(before) == 1:
        records.append(_tombstone(group_id, before))
    if not after:
        # Without a bump the topics of the expression would stay assigned (KAFKA-19899).
        return RegexChange(tuple(records), True, True)
    if after not in counts:
        check_regex(after, shard.settings.group_regex_max_bytes)
    bumps = group is not None and (after in group.resolved_regexes or _is_late(group, before))
    return RegexChange(tuple(records), True, bumps, after not in counts)


def _is_late(group: ConsumerGroup, before: str) -> bool:
    """Whether a target in computation may use the member's old expression.

    The member would not get these partitions any more, and without another epoch no other member
    would either.
    """
    return before in group.resolved_regexes and group.target_epoch < group.group_epoch


def compute_regex_tombstones(
    group: ConsumerGroup, leaving: Iterable[ConsumerGroupMemberMetadataValue | None]
) -> list[Record]:
    """The tombstones of the expressions that no member uses once these members have left."""
    if not group.regexes:
        return []
    counts = Counter(regex_of(metadata) for metadata in leaving)
    gone = (regex for regex, count in counts.items() if regex and group.regexes[regex] == count)
    return [_tombstone(group.group_id, regex) for regex in gone]


def compute_all_regex_tombstones(group: ConsumerGroup) -> list[Record]:
    """The tombstones of all resolved expressions of a group, used or not."""
    return [_tombstone(group.group_id, regex) for regex in group.resolved_regexes]


def _tombstone(group_id: GroupId, regex: str) -> Record:
    return Record(ConsumerGroupRegularExpressionKey(group_id, regex), None)


def compute_names_after(
    group: ConsumerGroup | None,
    old: Sequence[ConsumerGroupMemberMetadataValue | None],
    new: Sequence[ConsumerGroupMemberMetadataValue],
) -> set[TopicName]:
    """The topics that a group subscribes to once ``new`` replaces ``old`` metadata of members."""
    names = Counter(group.subscribed_names if group is not None else {})
    regexes = Counter(group.regexes if group is not None else {})
    for metadata in old:
        names.subtract(metadata.subscribed_topic_names if metadata is not None else ())
        regexes[regex_of(metadata)] -= 1
    for metadata in new:
        names.update(metadata.subscribed_topic_names)
        regexes[regex_of(metadata)] += 1
    found = {name for name, count in names.items() if count > 0}
    if group is not None:
        for regex, topics in group.resolved_regexes.items():
            if regexes[regex] > 0:
                found |= topics
    return found
