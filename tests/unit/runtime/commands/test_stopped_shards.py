"""A command that would violate an invariant stops its log partition, and no other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cli.data_folder import DataFolder
from coordinator.core.consumer import state_after
from coordinator.core.replay.invariants import INVARIANTS
from coordinator.dispatch import handle as dispatch
from coordinator.runtime.commands import group_command_runner
from model.caller import INTERNAL
from model.commands.groups import ConsumerGroupDescribe, ListGroups
from model.errors import ErrorCode, GroupError
from model.ids import GroupId, LogPartition, MemberId
from model.log.records import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMemberValue,
    Record,
)
from model.responses.groups import ConsumerGroupDescribeResponse, ListGroupsResponse
from model.responses.offsets import OffsetCommitResponse
from tests.support.virtual.server import VirtualServer

NAMES = ("t",)


class GuardedServer(VirtualServer):
    """Keeps the evidence."""

    def __init__(self) -> None:
        self.evidence: list[tuple[LogPartition, str]] = []
        super().__init__({"t": 2})

    def keep_evidence(self, partition: LogPartition, evidence: str) -> None:
        self.evidence.append((partition, evidence))


@pytest.fixture
def server() -> GuardedServer:
    return GuardedServer()


def two_owners(patch: pytest.MonkeyPatch) -> None:
    """A partition is given to a member although another holds it."""
    compute = state_after.compute_next_assignment_state

    def careless(*arguments: Any, **options: Any) -> Any:
        return compute(*arguments, **{**options, "is_free": lambda number: True})

    patch.setattr(state_after, "compute_next_assignment_state", careless)


def find_other_group(server: VirtualServer, *, together: bool) -> str:
    """A group in another log partition than ``g``, or in the same."""
    place = server.runtime.partition_of(GroupId("g"))
    return next(
        name
        for name in (f"g{number}" for number in range(100))
        if (server.runtime.partition_of(GroupId(name)) == place) is together
    )


def settle_member(server: VirtualServer, group: str, member: str) -> int:
    server.join(group, member, NAMES)
    return server.beat(server.acknowledge_command(group, member)).member_epoch


def code_of(answer: object) -> ErrorCode:
    assert isinstance(answer, GroupError), repr(answer)
    return answer.code


def test_a_broken_core_stops_one_shard(
    server: GuardedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, neighbour = (find_other_group(server, together=same) for same in (False, True))
    epochs = {name: settle_member(server, name, "m1") for name in ("g", other, neighbour)}
    end = server.store.next_offset(server.runtime.partition_of(GroupId("g")))

    two_owners(monkeypatch)
    refused = server.ask(server.join_command("g", "m2", NAMES))
    monkeypatch.undo()

    assert code_of(refused) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    server.settle()
    ((partition, evidence),) = server.evidence
    assert partition == server.runtime.partition_of(GroupId("g"))
    assert "invariant one_owner: partition" in evidence
    assert "m1: epoch" in evidence
    assert "m2" in evidence
    assert server.runtime.stats.invariant_violations == dict.fromkeys(INVARIANTS, 0) | {
        "one_owner": 1
    }
    written = server.store.next_offset(partition)
    assert written >= end, "the join was written, the second owner was not"
    for name in ("g", neighbour):
        beat = server.heartbeat(name, "m1", epochs[name])
        assert code_of(server.ask(beat)) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        commit = server.commit_command(name, "m1", epochs[name], "t", {0: 5})
        assert code_of(server.ask(commit)) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert not server.runtime.touch(GroupId(name), MemberId("m1"))
    server.advance(120_000)
    assert server.store.next_offset(partition) == written, "nobody expires"


def test_the_other_shards_go_on(server: GuardedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    other = find_other_group(server, together=False)
    settle_member(server, "g", "m1")
    epoch = settle_member(server, other, "m1")
    commit = server.commit_command(other, "m1", epoch, "t", {0: 5})
    ticket = server.runtime.commit_ticket(commit)
    assert ticket is not None

    two_owners(monkeypatch)
    server.ask(server.join_command("g", "m2", NAMES))
    monkeypatch.undo()

    assert isinstance(server.ask(commit), OffsetCommitResponse)
    assert server.runtime.commit_ticket(commit) is None, "each commit is looked at now"
    server.join(other, "m2", NAMES)
    assert server.beat(server.heartbeat(other, "m1", epoch)).member_epoch >= epoch
    listed = server.ask(ListGroups(INTERNAL))
    assert isinstance(listed, ListGroupsResponse)
    assert {group.group_id for group in listed.groups} == {"g", other}
    described = server.ask(ConsumerGroupDescribe(INTERNAL, (GroupId("g"), GroupId(other))))
    assert isinstance(described, ConsumerGroupDescribeResponse)
    assert [group.error for group in described.groups] == [ErrorCode.NONE] * 2


def test_a_restart_has_the_group_as_it_was(
    server: GuardedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    epoch = settle_member(server, "g", "m1")
    two_owners(monkeypatch)
    server.ask(server.join_command("g", "m2", NAMES))
    monkeypatch.undo()

    server.restart(survivors=1_000)

    assert server.beat(server.heartbeat("g", "m1", epoch)).member_epoch >= epoch
    server.join("g", "m2", NAMES)
    server.beat(server.acknowledge_command("g", "m1"))
    owned = [number for member in server.group("g").members() for number in member.assigned]
    assert len(owned) == len(set(owned))
    assert not server.runtime.stats.invariant_violations["one_owner"]


Change = Callable[[Any], Any]


def to_epoch(value: Any) -> Any:
    if isinstance(value, ConsumerGroupMetadataValue):
        return replace(value, epoch=1)
    return value


def ahead(value: Any) -> Any:
    if isinstance(value, ConsumerGroupCurrentMemberAssignmentValue):
        return replace(value, member_epoch=value.member_epoch + 100)
    return value


def same_instance(value: Any) -> Any:
    if isinstance(value, ConsumerGroupMemberMetadataValue):
        return replace(value, instance_id="i1")
    return value


@pytest.mark.parametrize(
    ("change", "invariant"),
    [
        (to_epoch, "epoch_order"),
        (ahead, "epoch_order"),
        (same_instance, "one_member_per_instance"),
    ],
    ids=["epoch-back", "member-ahead", "instance"],
)
def test_each_invariant_is_looked_after(
    server: GuardedServer, monkeypatch: pytest.MonkeyPatch, change: Change, invariant: str
) -> None:
    command = replace(server.join_command("g", "m1", NAMES), instance_id="i1")
    server.ask(command)
    whole = dispatch.handle

    def wrong(*arguments: Any) -> Any:
        outcome = whole(*arguments)
        records = tuple(Record(record.key, change(record.value)) for record in outcome.records)
        return replace(outcome, records=records)

    monkeypatch.setattr(group_command_runner, "handle", wrong)
    server.ask(server.join_command("g", "m2", NAMES))
    monkeypatch.undo()
    server.settle()
    ((_, evidence),) = server.evidence
    assert evidence.startswith(f"invariant {invariant}: ")


def test_a_target_gives_a_partition_once(
    server: GuardedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle_member(server, "g", "m1")
    whole = dispatch.handle

    def wrong(*arguments: Any) -> Any:
        outcome = whole(*arguments)
        given = [
            record
            for record in outcome.records
            if isinstance(record.value, ConsumerGroupTargetAssignmentMemberValue)
        ]
        if len(given) < 2:
            return outcome
        both = tuple(topic for record in given for topic in record.value.topic_partitions)
        doubled = given[0], Record(given[1].key, replace(given[1].value, topic_partitions=both))
        others = tuple(record for record in outcome.records if record not in given)
        return replace(outcome, records=(*doubled, *others))

    monkeypatch.setattr(group_command_runner, "handle", wrong)
    server.ask(server.join_command("g", "m2", NAMES))
    monkeypatch.undo()
    server.settle()
    ((_, evidence),) = server.evidence
    assert evidence.startswith("invariant one_target: ")


def test_evidence_is_kept_in_a_file_of_its_own(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    path = folder.write_evidence("a.txt", "what \ud800 happened\n")
    assert path.read_text() == "what \\ud800 happened\n"
    with pytest.raises(FileExistsError):
        folder.write_evidence("a.txt", "again")
    assert (path.parent.stat().st_mode & 0o777) == 0o700
