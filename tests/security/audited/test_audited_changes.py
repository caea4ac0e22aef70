"""Each change that an administrator makes, over either door, is noted with before and after.

The tables have every command that is audited, and every call and API that submits one.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, get_args

import grpc.aio
import pytest

from coordinator.dispatch.command_table import COMMANDS
from coordinator.runtime.audit import Change
from coordinator.runtime.commands.audited_commands import (
    AUDITED,
    AuditedCommand,
    find_audited,
)
from gateway.apis.api_registry import APIS
from model.caller import ANONYMOUS
from model.commands.command import Command
from model.ids import GroupId, LogPartition
from tests.security.audited.audited_calls import BY_MEMBERS, READS, RPCS
from tests.security.audited.audited_doors import (
    COMMIT,
    HEARTBEAT,
    Doors,
    run_doors,
)
from tests.security.audited.audited_requests import UNAUDITED_APIS, WIRE
from tests.security.audited.noted_changes import (
    SESSION,
    Case,
)
from tests.support.service.methods import METHODS
from tests.support.wire.fields import beat, commit, join


def test_every_command_is_audited_or_said_not_to_be() -> None:
    every = set(get_args(Command))
    audited = {kind for kind in every if find_audited(object.__new__(kind)) is not None}
    assert audited == AUDITED == set(get_args(AuditedCommand))
    assert every <= COMMANDS.keys()


def test_every_call_and_api_has_a_row() -> None:
    assert RPCS.keys() | READS | BY_MEMBERS == METHODS.keys()
    assert WIRE.keys() | UNAUDITED_APIS == {api.name for api in APIS}
    kinds = {case.change.kind for case in (*RPCS.values(), *WIRE.values())}
    assert kinds == {kind.__name__ for kind in AUDITED} | {
        "CreateBackup",
        "TakeGroup",
        "ReleaseGroup",
    }


async def check(case: Case) -> Doors:
    async with run_doors() as doors:
        if case.first is not None:
            await case.first(doors)
        doors.audit.changes.clear()
        doors.audit.callers.clear()
        await case.do(doors)
        (change,) = doors.audit.changes
        expected = case.change
        if expected.kind == "CreateTopic":  # Its id is random.
            assert change.after is not None
            change = Change(*fields(change)[:-1], {"partitions": change.after["partitions"]})
        assert fields(change) == fields(expected, doors.runtime.partition_of(GroupId("g")))
        assert doors.audit.refusals == []
        # Once more it is refused, or changes nothing.
        doors.audit.changes.clear()
        if expected.kind not in ("CreateBackup", "OffsetCommit"):
            with suppress(grpc.aio.AioRpcError):
                await case.do(doors)
            assert doors.audit.changes == []
        return doors


def fields(change: Change, partition: LogPartition | None = None) -> tuple[Any, ...]:
    states = [change.before, change.after]
    for number, state in enumerate(states):
        if state is not None and "log_partition" in state and partition is not None:
            states[number] = {**state, "log_partition": partition}
    return (change.kind, change.operation, change.resource_type, change.resource_name, *states)


@pytest.mark.parametrize("name", RPCS)
async def test_a_call_is_noted(name: str) -> None:
    doors = await check(RPCS[name])
    (caller,) = doors.audit.callers
    assert (caller.principal, caller.client_host, caller.listener) == (
        ANONYMOUS, "/127.0.0.1", "grpc",
    )  # fmt: skip


@pytest.mark.parametrize("name", WIRE)
async def test_a_request_is_noted(name: str) -> None:
    doors = await check(WIRE[name])
    (caller,) = doors.audit.callers
    assert (caller.principal, caller.client_id, caller.client_host, caller.listener) == (
        ANONYMOUS, "cli-7", "/127.0.0.1", "PLAINTEXT",
    )  # fmt: skip


async def test_what_is_only_tried_is_no_change() -> None:
    async with run_doors() as doors:
        await doors.commit(5)
        await doors.empty_consumer_group()
        doors.audit.changes.clear()
        for name, fields in (
            ("AdminService.CreateTopic", {"topic_name": "new", "num_partitions": 1}),
            ("AdminService.GrowTopic", {"topic_name": "orders", "num_partitions": 9}),
            ("AdminService.SetTopicRacks", {"topic_name": "orders"}),
            ("AdminService.DeleteTopic", {"topic_name": "orders"}),
            ("AdminService.AlterGroupConfigs",
             {"group_id": "g", "changes": [{"name": SESSION, "value": "50000"}]}),
            ("AdminService.ConvertToClassicGroup", {"group_id": "g"}),
            ("FreezeService.FreezeGroup", {"group_id": "g"}),
            ("AdminService.DeleteGroup", {"group_id": "g"}),
            ("AdminService.DeleteOffsets",
             {"group_id": "g", "topics": [{"topic_name": "orders", "partitions": [0]}]}),
            ("AccessService.DeleteAcls", {}),
        ):  # fmt: skip
            await doors.call(name, **fields, validate_only=True)
        assert doors.audit.changes == []


async def test_what_members_do_is_no_change() -> None:
    async with run_doors() as doors:
        answer = await doors.wire.ask(HEARTBEAT, 1, **join("g", "m", ("orders",)))
        topics = commit("g", "orders", {0: 7})["topics"]
        done = await doors.wire.ask(
            COMMIT,
            9,
            group_id="g",
            member_id="m",
            generation_id_or_member_epoch=answer.member_epoch,
            topics=topics,
        )
        assert done.topics[0].partitions[0].error_code == 0
        await doors.wire.ask(HEARTBEAT, 1, **beat("g", "m", -1))
        assert doors.audit.changes == []


async def test_very_many_offsets_are_several_lines() -> None:
    async with run_doors() as doors:
        await doors.call("AdminService.GrowTopic", topic_name="orders", num_partitions=250)
        doors.audit.changes.clear()
        for offset in (1, 2):
            rows = dict.fromkeys(range(250), offset)
            await doors.wire.ask(COMMIT, 8, **commit("g", "orders", rows))
        assert [change.before for change in doors.audit.changes[:3]] == [None] * 3
        noted = [
            (change.before["offsets"], change.after["offsets"])  # type: ignore[index]
            for change in doors.audit.changes[3:]
        ]
        assert [len(after) for _, after in noted] == [100, 100, 50]  # type: ignore[arg-type]
        assert all(before.keys() == after.keys() for before, after in noted)  # type: ignore[union-attr]


async def test_offsets_that_are_too_many_to_look_at_are_counted() -> None:
    async with run_doors() as doors:
        await doors.call("AdminService.GrowTopic", topic_name="orders", num_partitions=1_002)
        doors.audit.changes.clear()
        rows = dict.fromkeys(range(1_002), 1)
        await doors.wire.ask(COMMIT, 8, **commit("g", "orders", rows))
        *parts, last = [change.after for change in doors.audit.changes]
        assert len(parts) == 10
        assert last == {"offsets_not_looked_at": 2}
