"""A bug while an outcome is applied ends the process, and a restart has the state of the log."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from coordinator.core.state.outcome import Outcome
from coordinator.runtime.commands import apply as apply_module
from coordinator.runtime.commands import replayer
from coordinator.runtime.commands.command_turns import Turns
from coordinator.runtime.commands.effects import Effects
from coordinator.runtime.commands.waiting_members import WaitingMembers
from coordinator.runtime.commit.process_end import EXIT_HALF_APPLIED, HalfApplied
from coordinator.runtime.commit.writer import Writer
from coordinator.runtime.topics import topic_images
from coordinator.runtime.topics.topic_images import TopicCatalogueRuntime
from model.caller import INTERNAL
from model.client_assignors import ClientAssignor, ClientAssignorsKey, ClientAssignorsValue
from model.commands.classic import JoinGroup, JoinProtocol
from model.commands.configs import AlterGroupConfigs, ConfigChange, ConfigOperation
from model.commands.groups import DeleteGroup
from model.commands.offsets import TopicOffsets
from model.commands.topics import GrowTopic
from model.commands.transactions import TxnOffsetCommit, WriteTxnMarkers
from model.ids import GroupId, LogPartition, MemberId, ProducerId, TopicName
from model.log.commit_records import make_offset_columns
from model.log.side_records import SideRecord
from model.responses.response import Done
from tests.support.virtual.server import CALLER, ProcessEnded, VirtualServer, error_name
from tests.unit.runtime.commands.committer import Committer

G = GroupId("g")
PRODUCER = ProducerId(7)


class Planted(Exception):
    """The planted bug."""


class Place(NamedTuple):
    """Where the bug is planted, at which call, and the command that reaches it."""

    where: Any
    name: str
    act: Callable[[VirtualServer], object]
    calls_before: int = 0


def join(server: VirtualServer) -> object:
    return server.submit(server.join_command("g", "b", ["foo"]))


def commit(server: VirtualServer) -> object:
    return server.submit(server.commit_command("s", "", None, "foo", {0: 9, 1: 9}))


def commit_and_more(server: VirtualServer) -> object:
    """A commit with a nonexistent partition: the others become separate records."""
    return server.submit(server.commit_command("s", "", None, "foo", {0: 9, 5: 9}))


def commit_again(server: VirtualServer) -> object:
    return Committer(server, "s").commit(0, 9)


def join_classic(server: VirtualServer) -> object:
    protocols = (JoinProtocol("range", b""),)
    member = MemberId("c")
    command = JoinGroup(
        INTERNAL, GroupId("c"), None, member, 10_000, 60_000, "consumer", protocols,
        requires_member_id=False,
    )  # fmt: skip
    return server.submit(command)


def pend(server: VirtualServer) -> object:
    topics = (TopicOffsets(TopicName("foo"), None, make_offset_columns([(0, 5, -1, "")])),)
    return server.submit(TxnOffsetCommit(CALLER, GroupId("s"), PRODUCER, 0, topics))


def end_transaction(server: VirtualServer) -> object:
    partition = server.runtime.partition_of(GroupId("s"))
    server.submit(WriteTxnMarkers(CALLER, LogPartition(partition), PRODUCER, 0, 3, True, 0))
    return pend(server)


def grow(server: VirtualServer) -> object:
    return server.submit(GrowTopic(INTERNAL, TopicName("foo"), 3))


def configure(server: VirtualServer) -> object:
    name = "consumer.session.timeout.ms"
    change = ConfigChange(name, ConfigOperation.SET, "50000")
    return server.submit(AlterGroupConfigs(INTERNAL, G, (change,)))


def delete(server: VirtualServer) -> object:
    return server.submit(DeleteGroup(INTERNAL, GroupId("s")))


PLACES = {
    "the first record": Place(replayer, "replay", join),
    "a later record": Place(replayer, "replay", join, 2),
    "the second half of a heartbeat": Place(Turns, "follow_up", join),
    "an effect": Place(Effects, "carry_out", join),
    "the entry of the log": Place(Writer, "append", join),
    "a target": Place(replayer.Replayer, "replay", join, 1),
    "who waits for others": Place(WaitingMembers, "apply", join_classic),
    "a commit": Place(apply_module, "replay_offset_group", commit),
    "a commit of what exists": Place(apply_module, "replay", commit_and_more),
    "a repeated commit": Place(apply_module, "replay_offset_group", commit_again),
    "the entry of a repeated commit": Place(Writer, "append_commit", commit_again),
    "offsets of a transaction": Place(apply_module, "replay_transaction", pend),
    "a marker": Place(apply_module, "replay_transaction", end_transaction, 1),
    "the end of a batch": Place(Turns, "close_batch", join),
    "a topic": Place(topic_images, "replay_side", grow),
    "who hears of a topic": Place(Effects, "carry_out", grow),
    "a config of a group": Place(TopicCatalogueRuntime, "replay", configure),
    "a deletion": Place(replayer, "replay", delete),
}


def plant(patch: pytest.MonkeyPatch, place: Place) -> list[str]:
    """Raise the bug from the given call on; returns the calls."""
    real = getattr(place.where, place.name)
    called: list[str] = []

    def failing(*arguments: Any, **options: Any) -> Any:
        called.append(place.name)
        if len(called) > place.calls_before:
            raise Planted
        return real(*arguments, **options)

    patch.setattr(place.where, place.name, failing)
    return called


def look(server: VirtualServer) -> tuple[object, ...]:
    """The state that a restart must neither lose nor invent."""
    members = sorted(str(member.member_id) for member in server.group("g").members())
    epochs = server.group("g").group_epoch, server.group("g").target_epoch
    offsets = [server.fetch("s", "foo", partition) for partition in range(2)]
    return members, epochs, offsets, server.runtime.image.by_name[TopicName("foo")].partitions


@pytest.mark.parametrize("name", PLACES)
def test_a_bug_after_the_first_of_it_ends_the_process(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = PLACES[name]
    server = VirtualServer({"foo": 2})
    server.join("g", "a", ["foo"])
    server.ask(server.commit_command("s", "", None, "foo", {0: 1, 1: 2}))
    before = look(server)
    with monkeypatch.context() as patch:
        called = plant(patch, place)
        answered: list[object] = []

        def act() -> None:
            answered.append(place.act(server))
            server.settle()

        with pytest.raises(ProcessEnded):
            act()
    assert len(called) > place.calls_before, "the bug was not met"
    failure = server.failures[0]
    assert isinstance(failure, HalfApplied), failure
    assert isinstance(failure.__cause__, Planted)
    assert str(failure), "it says what was to be applied"
    told = [answer for pending in answered for answer in getattr(pending, "answers", ())]
    assert all(error_name(answer) != "NONE" for answer in told), "a half was acknowledged"
    server.restart()
    if name != "a marker":  # Its transaction was whole before.
        assert look(server) == before
    server.failures.clear()
    place.act(server)
    server.settle()
    assert not server.failures


def test_a_bug_before_anything_has_changed_is_told_and_ends_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = VirtualServer({"foo": 2})
    before = look_at_none(server)

    def failing(*arguments: Any) -> Any:
        raise Planted

    with monkeypatch.context() as patch:
        patch.setattr("coordinator.runtime.commands.group_command_runner.handle", failing)
        for command in (
            server.join_command("g", "b", ["foo"]),
            server.commit_command("s", "", -1, "foo", {0: 1}),
        ):
            assert error_name(server.ask(command)) == "UNKNOWN_SERVER_ERROR"
    assert not server.failures
    assert look_at_none(server) == before
    server.join("g", "b", ["foo"])


def test_side_records_alone_are_written_and_in_force(monkeypatch: pytest.MonkeyPatch) -> None:
    """No command of a group has such an outcome yet; the first one must not lose it."""
    server = VirtualServer({"foo": 2})
    server.join("g", "a", ["foo"])
    key = ClientAssignorsKey(server.runtime.partition_of(G), G, MemberId("a"))
    value = ClientAssignorsValue((ClientAssignor("mine", 0, 1, 1),))
    outcome = Outcome(side=(SideRecord(key, value),), response=Done())
    with monkeypatch.context() as patch:
        patch.setattr(
            "coordinator.runtime.commands.group_command_runner.handle", lambda *_: outcome
        )
        assert error_name(server.ask(server.heartbeat("g", "a", 2))) == "NONE"
    for _ in range(2):
        state = server.group("g").client_assignor_state
        assert state is not None
        assert state.assignors == {"a": value.assignors}
        server.restart()


def look_at_none(server: VirtualServer) -> int:
    return server.runtime.stats.records_written


def test_what_fails_in_a_door_ends_nothing() -> None:
    server = VirtualServer({"foo": 2})

    def failing(answer: object) -> None:
        raise Planted

    server.runtime.submit(server.fetch_command("s", "foo", (0,)), failing)
    server.runtime.submit(server.join_command("g", "a", ["foo"]), failing)
    server.settle()
    assert not server.failures
    assert server.group("g").member_count == 1


def test_the_process_ends_with_an_exit_code_of_its_own_and_says_why() -> None:
    program = (
        "from coordinator.runtime.commit.process_end import HalfApplied, exit_process\n"
        "exit_process(HalfApplied('what was to be applied', KeyError('planted')))\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert ended.returncode == EXIT_HALF_APPLIED == 70
    said = (ended.stdout + ended.stderr).decode()
    assert "applying_failed" in said
    assert "what was to be applied" in said
    assert "planted" in said
