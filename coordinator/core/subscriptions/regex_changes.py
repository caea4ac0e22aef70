"""What a change of patterns comes to in a group: tombstones, epochs, and what must be resolved.

A pattern is resolved apart from the heartbeat that brings it: the member gets the topics of its
pattern once ``InstallRegexes`` has written them (record 16). Until then it subscribes to what it
names, and to nothing more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from coordinator.core.state.consumer_group import ConsumerGroup, regex_of
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
    """A member's change of pattern.

    ``bumps``: the group needs an epoch for it now, for what the member subscribes to is known.
    ``resolves``: the pattern is new to the group, and it is to be found what it stands for.
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
    """What it means that a member says ``new`` of itself. Raises what row C9 says."""
    before, after = regex_of(old), regex_of(new)
    if before == after:
        return _NO_CHANGE
    counts = group.regexes if group is not None else {}
    records: list[Record] = []
    if before and counts.get(before) == 1:
        records.append(_tombstone(group_id, before))
    if not after:
        # Without an epoch the topics of the pattern would stay assigned (KAFKA-19899).
        return RegexChange(tuple(records), True, True)
    if after not in counts:
        check_regex(after, shard.settings.group_regex_max_bytes)
    bumps = group is not None and (after in group.resolved_regexes or _is_late(group, before))
    return RegexChange(tuple(records), True, bumps, after not in counts)


def _is_late(group: ConsumerGroup, before: str) -> bool:
    """Whether a target may be under way that gives a member what it has its old pattern for.

    Of that target it gets nothing, and with no epoch after it nobody else would.
    """
    return before in group.resolved_regexes and group.target_epoch < group.group_epoch


def compute_regex_tombstones(
    group: ConsumerGroup, leaving: Iterable[ConsumerGroupMemberMetadataValue | None]
) -> list[Record]:
    """The patterns that nobody has any more when these members have gone."""
    if not group.regexes:
        return []
    counts = Counter(regex_of(metadata) for metadata in leaving)
    gone = (regex for regex, count in counts.items() if regex and group.regexes[regex] == count)
    return [_tombstone(group.group_id, regex) for regex in gone]


def compute_all_regex_tombstones(group: ConsumerGroup) -> list[Record]:
    """What removes every pattern of a group, those of nobody too."""
    return [_tombstone(group.group_id, regex) for regex in group.resolved_regexes]


def _tombstone(group_id: GroupId, regex: str) -> Record:
    return Record(ConsumerGroupRegularExpressionKey(group_id, regex), None)


def compute_names_after(
    group: ConsumerGroup | None,
    old: Sequence[ConsumerGroupMemberMetadataValue | None],
    new: Sequence[ConsumerGroupMemberMetadataValue],
) -> set[TopicName]:
    """The names that a group subscribes to once members say ``new`` instead of ``old``."""
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
