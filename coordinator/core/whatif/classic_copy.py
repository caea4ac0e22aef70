"""What would move if all members of a consumer group used the classic protocol.

The group is converted without a move, when its last member of the consumer protocol leaves. Then
the leader assigns, with an assignor of the clients.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.consumer.consumer_member import Member
from coordinator.core.state.shard import Shard
from coordinator.core.whatif.answer import (
    Described,
    Owners,
    compute_loads,
    compute_moves,
    describe_members,
)
from coordinator.core.whatif.question import compute_new_member_ids, find_named_member
from model.ids import MemberId, TopicId
from model.topics import Topic
from model.what_if import WhatIf, WhatIfAnswer
from muster.assignors.classic.group import Member as ClassicMember
from muster.assignors.classic.registry import compute_assignment

REBALANCES_MAX: Final = 10
"""A cooperative assignor needs two: members revoke first."""

_Owned: TypeAlias = Mapping[str, Collection[int]]


def compute_classic_answer(shard: Shard, question: WhatIf) -> Iterator[WhatIfAnswer | None]:
    """``None`` after each rebalance; the answer comes last. ``shard`` has the copy only."""
    assert question.assignor is not None, "there is no assignor of the server"
    group = shard.consumer_groups[question.group_id]
    topics = _compute_topics(shard, question)
    before = [_compute_member(shard, group, member) for member in group.members()]
    after = _change_members(group, question, before)
    names = sorted({name for member in after for name in member.topics})
    counts = {name: topics[name].partitions for name in names}
    racks = {name: topics[name].racks for name in names if topics[name].racks}
    rebalances = 0
    while rebalances < REBALANCES_MAX:
        found = compute_assignment(question.assignor, after, counts, racks)
        given = [replace(each, owned=_compact(found[each.member_id])) for each in after]
        if [each.owned for each in given] == [_compact(each.owned) for each in after]:
            break
        rebalances += 1
        after = [replace(each, generation=each.generation + 1) for each in given]
        yield None
    described = describe_members(group.members())
    owners = _find_owners(before, topics), _find_owners(after, topics)
    yield WhatIfAnswer(
        question.group_id,
        question.assignor,
        compute_moves(shard.image, *owners),
        compute_loads(described, _describe(after, described), *owners),
        epochs=rebalances,
        rounds=rebalances,
        is_complete=rebalances < REBALANCES_MAX,
    )


def _compute_topics(shard: Shard, question: WhatIf) -> dict[str, Topic]:
    """By name; nobody knows the racks of new partitions yet."""
    topics: dict[str, Topic] = dict(shard.image.by_name.items())
    for name, partitions in question.partitions:
        if partitions > topics[name].partitions:
            topics[name] = replace(topics[name], partitions=partitions, racks=())
    return topics


def _compute_member(shard: Shard, group: ConsumerGroup, member: Member) -> ClassicMember:
    metadata, by_id = member.metadata, shard.image.by_id
    indexes = group.subscribed_topic_indexes(metadata, shard.image)
    held = sorted([*member.assigned, *member.pending_revocation])
    return ClassicMember(
        member.member_id,
        sorted(by_id[group.numbers.topics[index]].name for index in indexes),
        None if metadata is None else metadata.instance_id,
        None if metadata is None else metadata.rack_id,
        {
            by_id[topic.topic_id].name: topic.partitions
            for topic in group.numbers.topic_partitions(held)
            if topic.topic_id in by_id
        },
        group.group_epoch,
    )


def _change_members(
    group: ConsumerGroup, question: WhatIf, members: Sequence[ClassicMember]
) -> list[ClassicMember]:
    gone = {find_named_member(group, name).member_id for name in question.remove}
    # They have gone: the group is converted when their grace periods have ended.
    gone.update(group.reserved)
    kept = [each for each in members if each.member_id not in gone]
    usual = max((each.topics for each in members), key=len, default=())
    taken = frozenset(MemberId(each.member_id) for each in members)
    ids = compute_new_member_ids(question.group_id, question.add, taken)
    return [*kept, *(ClassicMember(each, usual) for each in ids)]


def _compact(owned: _Owned) -> dict[str, list[int]]:
    return {name: sorted(partitions) for name, partitions in owned.items() if partitions}


def _find_owners(members: Sequence[ClassicMember], topics: Mapping[str, Topic]) -> Owners:
    found: dict[tuple[TopicId, int], MemberId] = {}
    for member in members:
        for name, partitions in member.owned.items():
            topic_id = topics[name].topic_id
            found.update(((topic_id, each), MemberId(member.member_id)) for each in partitions)
    return found


def _describe(members: Sequence[ClassicMember], known: Described) -> Described:
    """Instance id and client id; newcomers have none."""
    ids = (MemberId(member.member_id) for member in members)
    return {member_id: known.get(member_id, (None, "")) for member_id in ids}
