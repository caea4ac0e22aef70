"""The list of as many users as there may be, and very many changes of them in a request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from coordinator.runtime.authorizer import AclAuthorizer
from model.access.scram import USERS_MAX, ScramCredential, ScramMechanism
from model.caller import ANONYMOUS, INTERNAL
from model.commands.users import (
    ALTERATIONS_PER_COMMAND_MAX,
    AlterUserScramCredentials,
    ScramUpsertion,
)
from model.errors import ErrorCode
from tests.cost.server import CostServer, cost_server
from tests.cost.turns import ATOMIC_STEPS_MAX, Counted

DESCRIBE, ALTER = 50, 51
CREDENTIAL: Final = ScramCredential(b"salt", 4_096, bytes(32), bytes(32))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[CostServer]:
    with cost_server(tmp_path, authorizer=AclAuthorizer(frozenset({ANONYMOUS}))) as server:
        yield server


def fill(server: CostServer, count: int) -> None:
    for at in range(0, count, ALTERATIONS_PER_COMMAND_MAX):
        upsertions = tuple(
            ScramUpsertion(f"u{number:05}", ScramMechanism.SHA_256, CREDENTIAL)
            for number in range(at, min(count, at + ALTERATIONS_PER_COMMAND_MAX))
        )
        server.call(AlterUserScramCredentials(INTERNAL, (), upsertions))


def check(counted: Counted) -> None:
    assert counted.longest <= ATOMIC_STEPS_MAX, f"{counted.longest} steps of {counted.total}"


def make_upsertions(count: int, first: int = 0) -> list[dict[str, Any]]:
    return [
        {
            "name": f"u{number:05}", "mechanism": 1, "iterations": 4_096, "salt": b"salt",
            "salted_password": bytes(32),
        }
        for number in range(first, first + count)
    ]  # fmt: skip


def test_as_many_users_as_there_may_be_are_described(server: CostServer) -> None:
    fill(server, USERS_MAX)
    check(server.count(DESCRIBE, 0, users=None))
    assert len(server.ask(DESCRIBE, 0, users=()).results) == USERS_MAX
    named = [{"name": f"u{number:05}"} for number in range(USERS_MAX + 5)]
    check(server.count(DESCRIBE, 0, users=named))


def test_as_many_users_are_created_and_deleted_by_a_request(server: CostServer) -> None:
    check(server.count(ALTER, 0, deletions=(), upsertions=make_upsertions(USERS_MAX)))
    assert len(server.runtime.scram_credentials) == USERS_MAX
    deletions = [{"name": f"u{number:05}", "mechanism": 1} for number in range(USERS_MAX)]
    check(server.count(ALTER, 0, deletions=deletions, upsertions=()))
    assert not len(server.runtime.scram_credentials)


def test_more_users_than_there_may_be_are_refused(server: CostServer) -> None:
    fill(server, USERS_MAX - 1)
    answer = server.ask(ALTER, 0, deletions=(), upsertions=make_upsertions(4, USERS_MAX - 2))
    codes = {row.user: row.error_code for row in answer.results}
    assert codes == {
        "u19998": ErrorCode.NONE,
        "u19999": ErrorCode.NONE,
        "u20000": ErrorCode.INVALID_REQUEST,
        "u20001": ErrorCode.INVALID_REQUEST,
    }
    # Another credential of a user that is there is no user more.
    more = [{**each, "mechanism": 2, "salted_password": bytes(64)} for each in make_upsertions(1)]
    (row,) = server.ask(ALTER, 0, deletions=(), upsertions=more).results
    assert row.error_code == ErrorCode.NONE


def test_whoever_may_not_change_users_takes_no_long_turn(tmp_path: Path) -> None:
    with cost_server(tmp_path, authorizer=AclAuthorizer(frozenset())) as server:
        check(server.count(ALTER, 0, deletions=(), upsertions=make_upsertions(USERS_MAX)))
        assert not len(server.runtime.scram_credentials)
