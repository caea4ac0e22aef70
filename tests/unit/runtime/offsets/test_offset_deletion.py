"""Groups with very many offsets are deleted in batches, between which the loop runs."""

from __future__ import annotations

import pytest

from coordinator.runtime.offsets import offset_deletion
from model.commands.classic import JoinGroup, JoinProtocol
from model.commands.groups import ConsumerGroupDescribe, DeleteGroup, ListGroups
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, MemberId
from model.responses.groups import ListGroupsResponse
from tests.support.offsets import read_group_offsets
from tests.support.virtual.server import CALLER, VirtualServer, error_name

SLICE = 4
MANY = 5 * SLICE
G = GroupId("g")
DELETE = DeleteGroup(CALLER, G)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> VirtualServer:
    monkeypatch.setattr(offset_deletion, "SLICE", SLICE)
    settings = CoordinatorSettings(flush_records_max=SLICE)
    server = VirtualServer({"foo": 100}, partitions=1, settings=settings)
    commit(server, range(MANY))
    return server


def commit(server: VirtualServer, partitions: range, group: str = "g") -> None:
    offsets = dict.fromkeys(partitions, 7)
    answer = server.ask(server.commit_command(group, "", None, "foo", offsets))
    assert error_name(answer) == "NONE"


def count_offsets(server: VirtualServer) -> int:
    partition = server.runtime.partition_of(G)
    return len(list(read_group_offsets(server.store, partition, G)))


def list_groups(server: VirtualServer) -> list[str]:
    answer = server.ask(ListGroups(CALLER))
    assert isinstance(answer, ListGroupsResponse)
    return [group.group_id for group in answer.groups]


def test_offsets_go_in_batches_and_others_are_served_between(server: VirtualServer) -> None:
    written = []
    write = server.store.write

    def note(*arguments: object) -> None:
        written.append(sum(append.records for append in arguments[0]))  # type: ignore[attr-defined]
        write(*arguments)  # type: ignore[arg-type]

    server.store.write = note  # type: ignore[assignment,method-assign]
    deletion = server.submit(DELETE)
    other = server.submit(server.commit_command("other", "", None, "foo", {0: 1}))
    while not other.is_answered:
        assert server.scheduler.step()
    assert not deletion.is_answered
    assert count_offsets(server) > 0
    server.settle()
    assert error_name(deletion.answer) == "NONE"
    assert len(written) >= MANY / (2 * SLICE)
    assert max(written) <= 2 * SLICE
    assert count_offsets(server) == 0
    assert list_groups(server) == ["other"]
    server.restart()
    assert list_groups(server) == ["other"]


def test_few_go_with_their_group_in_one_batch(server: VirtualServer) -> None:
    commit(server, range(SLICE), "few")
    before = server.store.next_offset(server.runtime.partition_of(G))
    assert error_name(server.ask(DeleteGroup(CALLER, GroupId("few")))) == "NONE"
    batches = list(server.store.read_log(server.runtime.partition_of(G), before))
    assert len(batches) == 1


def test_who_is_in_the_group_keeps_its_offsets(server: VirtualServer) -> None:
    server.join("g", "m", ["foo"])
    assert error_name(server.ask(DELETE)) == "NON_EMPTY_GROUP"
    assert count_offsets(server) == MANY


def test_asking_alone_deletes_nothing(server: VirtualServer) -> None:
    assert error_name(server.ask(DeleteGroup(CALLER, G, validate_only=True))) == "NONE"
    assert count_offsets(server) == MANY
    assert list_groups(server) == ["g"]


def test_nobody_joins_and_nobody_else_deletes_meanwhile(server: VirtualServer) -> None:
    deletion = server.submit(DELETE)
    join = server.join_command("g", "m", ["foo"])
    classic = JoinGroup(
        CALLER, G, MemberId(""), None, "consumer", (JoinProtocol("range", b""),), 10_000, 10_000
    )
    answers = [server.submit(command) for command in (join, classic, DELETE)]
    other = server.submit(server.join_command("other", "m", ["foo"]))
    server.settle()
    assert [error_name(each.answer) for each in answers] == ["COORDINATOR_LOAD_IN_PROGRESS"] * 3
    assert error_name(other.answer) == "NONE"
    assert error_name(deletion.answer) == "NONE"
    assert error_name(server.ask(join)) == "NONE"
    assert server.fetch("g", "foo", 3) == -1


def test_what_is_committed_meanwhile_goes_too(server: VirtualServer) -> None:
    deletion = server.submit(DELETE)
    committed = server.submit(server.commit_command("g", "", None, "foo", {0: 9, 99: 9}))
    server.settle()
    assert error_name(committed.answer) == error_name(deletion.answer) == "NONE"
    assert count_offsets(server) == 0
    assert list_groups(server) == []


def test_a_deletion_that_a_crash_ended_can_be_asked_for_again(server: VirtualServer) -> None:
    server.scheduler.blocking_ms = lambda: 10
    deletion = server.submit(DELETE)
    for _ in range(4):
        server.scheduler.step()
    assert not deletion.is_answered
    server.restart(survivors=1)
    server.scheduler.blocking_ms = lambda: 0
    assert 0 < count_offsets(server) < MANY
    assert list_groups(server) == ["g"]
    assert error_name(server.ask(DELETE)) == "NONE"
    assert count_offsets(server) == 0
    assert list_groups(server) == []


def test_an_empty_consumer_group_goes_with_its_offsets(server: VirtualServer) -> None:
    server.join("g", "m", ["foo"])
    server.leave("g", "m")
    assert error_name(server.ask(DELETE)) == "NONE"
    described = server.ask(ConsumerGroupDescribe(CALLER, (G,)))
    assert described.groups[0].error.name == "GROUP_ID_NOT_FOUND"  # type: ignore[union-attr]
    assert list_groups(server) == []
