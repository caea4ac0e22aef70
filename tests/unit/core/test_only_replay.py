"""Only replay modifies group state; all other code reads it."""

import re

import pytest

from tests.state_changes import Change, build_server, find_changes

pytestmark = pytest.mark.xdist_group("only_replay")
"""One process runs them all, for they share the fixture."""

PACKAGES = ("coordinator", "translator")
"""The packages to search; others that see a shard only describe it."""

PLANTED = """
import numpy as np
from coordinator.core.state.consumer.consumer_group import ConsumerGroup, Member
from coordinator.core.state.foreign_groups import StreamsGroup
from coordinator.core.state.open_transactions import OpenTransaction
from coordinator.core.state.shard import GroupState, Shard
from model.ids import GroupId, MemberId, TopicName

def change(shard: Shard, group: ConsumerGroup, group_id: GroupId, name: TopicName) -> None:
    group.revision += 1  # changes
    group.group_epoch, known = 1, 2  # changes
    group.entries[MemberId("m")] = Member(MemberId("m"), 0)  # changes
    del group.target[3:]  # changes
    group.entry(MemberId("m"))  # changes
    group.numbers.ensure(next(iter(group.numbers.topics)), 4)  # changes
    group.untargeted.clear()  # changes
    shard.state.offset_groups.discard(group_id)  # changes
    shard.state.groups_by_topic.setdefault(name, set()).add(group_id)  # changes, changes
    shard.state.consumer_groups = {}  # changes
    shard.open_transactions.end(1)  # type: ignore[arg-type]  # changes
    setattr(group, "revision", 1)  # changes

class Shell:
    def __init__(self, shard: Shard, state: GroupState) -> None:
        self._shard = shard
        self._state = state

    def change(self, group_id: GroupId, name: TopicName) -> None:
        group = self._shard.consumer_groups.get(group_id)
        if group is not None and (member := group.member(MemberId("m"))) is not None:
            member.member_epoch = -1  # changes
            counts = group.subscribed_names
            counts[name] = 1  # changes
            counts.pop(name)  # changes
            np.frombuffer(group.owner, np.int32)[0] = 1  # changes
        forget = self._state.offset_groups.discard  # changes
        forget(group_id)
        groups = self._state.groups_by_topic.get(name)
        if groups is not None:
            groups |= {group_id}  # changes
        for foreign in self._shard.foreign_groups.values():
            if isinstance(foreign, StreamsGroup):
                foreign.topology_epoch = None  # changes
            foreign.members.popitem()  # changes

def read(shard: Shard, group: ConsumerGroup, transaction: OpenTransaction) -> None:
    names = set(group.subscribed_names)
    names.add(TopicName("t"))
    target = group.target[:]
    target[0] = 1
    members = sorted(group.entries)
    members.append(MemberId("m"))
    group = ConsumerGroup(GroupId("g"))
    shard.soft.being_deleted.add(group.group_id)
    transaction.timeout.at_ms = 1
    for each in shard.classic_groups.values():
        each.upgrade_checks.found[1] = "why"
"""


@pytest.fixture(scope="module")
def changes() -> list[Change]:
    """One run of mypy over the server and the planted changes, for their types: some 10 s."""
    found = build_server(PACKAGES, {"planted": PLANTED})
    return find_changes(found, {*PACKAGES, "planted"})


def test_what_is_planted_is_found(changes: list[Change]) -> None:
    lines = enumerate(PLANTED.split("\n"), start=1)
    expected = [number for number, line in lines for _ in re.findall(r"\bchanges\b", line)]
    assert [change.line for change in changes if change.module == "planted"] == expected


def test_only_replay_changes_group_state(changes: list[Change]) -> None:
    assert [change for change in changes if change.module != "planted"] == []
