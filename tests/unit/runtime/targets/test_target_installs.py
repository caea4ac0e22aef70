"""Targets of large groups: their records are built in slices and installed at once."""

from __future__ import annotations

from typing import NoReturn

import pytest

from coordinator.runtime.commit.writer import Writer
from coordinator.runtime.targets import target_installs
from model.commands.consumer import ConsumerGroupLeave
from model.ids import GroupId, MemberId
from tests.support.invariants import check_group
from tests.support.virtual.server import CALLER, VirtualServer

MEMBERS = [f"m{number}" for number in range(9)]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> VirtualServer:
    monkeypatch.setattr(target_installs, "SLICE", 2)
    return VirtualServer({"foo": 18})


def begin(server: VirtualServer, *names: str) -> None:
    """All members join at once, and their target is being installed."""
    topics = names or ("foo",)
    joins = [server.submit(server.join_command("g", name, topics)) for name in MEMBERS]
    for _ in range(100):
        if server.runtime.parts.targets.in_flight:
            break
        server.scheduler.step()
    assert server.runtime.parts.targets.in_flight == 1
    assert not any(join.is_answered for join in joins)


def given(server: VirtualServer) -> dict[str, int]:
    """How many partitions the target gives to each member."""
    return {member.member_id: len(member.target or ()) for member in server.group("g").members()}


def test_between_slices_nothing_of_it_is_in_force(server: VirtualServer) -> None:
    begin(server)
    seen = set()
    while server.runtime.parts.targets.in_flight:
        group = server.group("g")
        seen.add((group.target_epoch, sum(given(server).values())))
        server.scheduler.step()
    assert seen == {(1, 0)}
    assert (server.group("g").target_epoch, given(server)) == (10, dict.fromkeys(MEMBERS, 2))


def test_all_of_it_is_in_one_write(server: VirtualServer, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    append = Writer.append
    monkeypatch.setattr(
        Writer,
        "append",
        lambda writer, entry: (written.append(len(entry.records)), append(writer, entry))[1],
    )
    begin(server)
    server.settle()
    assert len(MEMBERS) + 1 in written
    server.restart()
    assert (server.group("g").target_epoch, given(server)) == (10, dict.fromkeys(MEMBERS, 2))


def test_a_member_that_leaves_between_slices_gets_nothing(server: VirtualServer) -> None:
    begin(server)
    server.scheduler.step()
    server.leave("g", "m0")
    server.leave("g", "m8")
    server.settle()
    group = server.group("g")
    assert group.target_epoch == group.group_epoch == 12
    assert sum(given(server).values()) == 18
    assert set(given(server)) == set(MEMBERS[1:-1])


def test_numbers_that_are_given_back_between_slices_are_given_anew(server: VirtualServer) -> None:
    """The topic has had no member since one left, and all members are about to get it."""
    server.join("g", "before", ["foo"])
    server.leave("g", "before")
    server.group("g")._look_at = 1_000
    server.create("bar", 1)
    begin(server, "bar", "foo")
    for _ in range(3):
        server.scheduler.step()
    numbers = server.group("g").numbers
    assert numbers.partitions(server.topic("foo")) == 18
    server.group("g")._look_at = 0
    server.submit(ConsumerGroupLeave(CALLER, GroupId("g"), MemberId("m8")))
    assert server.runtime.parts.targets.in_flight
    server.group("g").give_numbers_back()
    assert len(server.group("g").numbers) == 0
    epoch = server.group("g").target_epoch
    while server.group("g").target_epoch == epoch:
        server.scheduler.step()
    check_group(server.group("g"))
    server.settle()
    assert set(given(server)) == set(MEMBERS[:-1])
    assert sum(given(server).values()) == 19
    check_group(server.group("g"))


def test_a_restart_between_slices_begins_anew(server: VirtualServer) -> None:
    begin(server)
    server.scheduler.step()
    assert server.runtime.parts.targets.in_flight == 1
    server.restart(survivors=1_000)
    server.settle()
    assert (server.group("g").target_epoch, given(server)) == (10, dict.fromkeys(MEMBERS, 2))


def test_a_stop_between_slices_installs_nothing(server: VirtualServer) -> None:
    begin(server)
    server.runtime.parts.targets._installs.stop()
    server.settle()
    assert server.group("g").target_epoch == 1


@pytest.mark.parametrize("failing", ["prepare_target", "encode_key"])
def test_a_target_that_cannot_be_installed_is_asked_for_again(
    server: VirtualServer, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    """Whether it fails at once or in a slice, the group does not stay without a target."""

    def fail(*_: object) -> NoReturn:
        raise ZeroDivisionError("a bug")

    server.join("other", "o", ["foo"])
    with monkeypatch.context() as patch:
        patch.setattr(target_installs, failing, fail)
        joins = [server.submit(server.join_command("g", name, ["foo"])) for name in MEMBERS]
        server.advance(500)
        assert all(join.is_answered for join in joins)
        assert server.runtime.parts.targets.in_flight == 0
        assert server.group("g").target_epoch < server.group("g").group_epoch
        assert server.join("other", "p", ["foo"]).assignment is not None
    server.advance(10_000)
    assert given(server) == dict.fromkeys(MEMBERS, 2)
    assert not server.failures
