"""Side records of client-side assignors: a write survives whole or not at all."""

from __future__ import annotations

from dataclasses import replace

import pytest

from model.client_assignors import ClientAssignor, InstalledMetadataValue
from model.commands.client_assignment import (
    ComputedAssignment,
    InstallAssignment,
    PrepareAssignment,
    PrepareAssignmentResponse,
)
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, MemberId
from model.log.records import TopicPartitions
from model.responses.response import Done
from tests.support.virtual.server import CALLER, Pending, VirtualServer, error_name

G = GroupId("g")
MINE = ClientAssignor("mine", 0, 1, 1, b"said")
NO_TIME_MS = 1


def join(server: VirtualServer, name: str, *assignors: ClientAssignor) -> Pending:
    command = server.join_command(G, name, ["foo"])
    return server.submit(replace(command, client_assignors=assignors))


def install(server: VirtualServer, name: str, epoch: int) -> Pending:
    """Assign everything to that member, for the epoch that lacks an assignment."""
    answer = server.ask(PrepareAssignment(CALLER, G, MemberId(name), epoch))
    assert isinstance(answer, PrepareAssignmentResponse)
    everything = (TopicPartitions(server.topic("foo"), (0, 1)),)
    computed = ComputedAssignment(MemberId(name), everything, 1, b"told")
    return server.submit(
        InstallAssignment(CALLER, G, MemberId(name), epoch, answer.group_epoch, (computed,))
    )


def offer(server: VirtualServer, name: str) -> None:
    server.runtime.client_assignments.offer(G, MemberId(name), lambda: None)


@pytest.mark.parametrize("survivors", [0, 1])
def test_a_join_that_was_not_answered_is_there_whole_or_not_at_all(survivors: int) -> None:
    server = VirtualServer({"foo": 2})
    join(server, "a", MINE)
    server.settle()
    server.scheduler.blocking_ms = lambda: NO_TIME_MS
    pending = join(server, "b", MINE)
    server.settle()
    assert not pending.is_answered
    server.restart(survivors)
    local = server.group(G).client_assignor_state
    assert local is not None
    assert ("b" in local.assignors) == (server.group(G).member(MemberId("b")) is not None)
    assert ("b" in local.assignors) == bool(survivors)
    assert local.assignors[MemberId("a")] == (MINE,)


@pytest.mark.parametrize("survivors", [0, 1])
def test_an_install_that_was_not_answered_is_there_whole_or_not_at_all(survivors: int) -> None:
    server = VirtualServer({"foo": 2})
    join(server, "a", MINE)
    server.settle()
    offer(server, "a")
    server.scheduler.blocking_ms = lambda: NO_TIME_MS
    pending = install(server, "a", 1)
    server.settle()
    assert not pending.is_answered
    server.restart(survivors)
    group = server.group(G)
    assert group.client_assignor_state is not None
    if survivors:
        installed = InstalledMetadataValue(2, "mine", 1, b"told")
        assert group.client_assignor_state.installed == {"a": installed}
        assert group.target_epoch == 2
    else:
        assert group.client_assignor_state.installed == {}
        assert group.target_epoch < group.group_epoch
        offer(server, "a")
        server.scheduler.blocking_ms = lambda: 0
        again = install(server, "a", 1)
        server.settle()
        assert again.answer == Done()


def test_the_last_member_takes_all_of_it_with_it() -> None:
    server = VirtualServer({"foo": 2})
    join(server, "a", MINE)
    server.settle()
    offer(server, "a")
    assert install(server, "a", 1)
    server.settle()
    kinds = [key[:1] for key, _ in server.store.side()]
    assert kinds.count(b"\x07") == kinds.count(b"\x08") == 1
    server.leave(G, "a")
    assert not {b"\x07", b"\x08"} & {key[:1] for key, _ in server.store.side()}
    assert server.group(G).client_assignor_state is None


def test_a_log_that_was_changed_without_its_side_records_leaves_nothing_to_be_told() -> None:
    """Side records of removed members do not apply to new members with their ids."""
    server = VirtualServer({"foo": 2})
    join(server, "a", MINE)
    server.settle()
    side = dict(server.store.side())
    server.leave(G, "a")
    server.store.write([], list(side.items()))
    server.store.sync()
    server.restart()
    assert server.group(G).client_assignor_state is None


@pytest.mark.parametrize(
    "assignors",
    [
        tuple(ClientAssignor(f"n{number}", 0, 0, 0) for number in range(33)),
        (ClientAssignor("mine", 0, 0, 0, bytes(64 * 1024 + 1)),),
        (
            ClientAssignor("mine", 0, 0, 0, bytes(40_000)),
            ClientAssignor("b", 0, 0, 0, bytes(40_000)),
        ),
    ],
)
def test_what_a_member_names_has_bounds(assignors: tuple[ClientAssignor, ...]) -> None:
    server = VirtualServer({"foo": 2})
    pending = join(server, "a", *assignors)
    server.settle()
    assert error_name(pending.answer) == "INVALID_REQUEST"
    assert not list(server.runtime.groups())


def test_a_stall_of_the_server_is_not_the_member_s_silence() -> None:
    """What arrived during a stall is read before the time limit counts as over."""
    server = VirtualServer({"foo": 2}, settings=CoordinatorSettings(assignor_time_limit_ms=1_000))
    join(server, "a", MINE)
    server.settle()
    offer(server, "a")
    server.advance(900)
    server.scheduler.now_ms += 5_000  # Nothing ran.
    server.settle()
    pending = install(server, "a", 1)
    server.settle()
    assert pending.answer == Done()
    assert server.runtime.stats.assignor_failures == 0


def test_the_time_is_over_where_the_server_stood_still_before() -> None:
    server = VirtualServer({"foo": 2}, settings=CoordinatorSettings(assignor_time_limit_ms=1_000))
    join(server, "a", MINE)
    server.settle()
    offer(server, "a")
    server.scheduler.now_ms += 5_000
    server.advance(1_001)
    assert server.runtime.stats.assignor_failures_by_reason["late"] == 1
    assert server.group(G).target_epoch == server.group(G).group_epoch
