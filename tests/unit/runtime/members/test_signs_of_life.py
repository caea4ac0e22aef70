"""A heartbeat that the server submits for a parked request does not renew the session."""

from __future__ import annotations

from dataclasses import replace

import pytest

from model.commands.classic import (
    ClassicHeartbeat,
    JoinGroup,
    JoinProtocol,
    MemberAssignment,
    SyncGroup,
)
from model.errors import GroupError
from model.ids import GroupId, MemberId
from model.responses.classic import JoinGroupResponse
from tests.support.virtual.server import CALLER, VirtualServer

G, A = GroupId("g"), MemberId("a")
SUBSCRIPTION = b"\0\1\0\0\0\1\0\3foo\0\0\0\0\0\0\0\0"
SESSION_MS = 10_000


def join_classic(server: VirtualServer) -> ClassicHeartbeat:
    """Join a by JoinGroup and SyncGroup; returns its heartbeat."""
    protocol = JoinProtocol("range", SUBSCRIPTION)
    join = JoinGroup(
        CALLER, G, A, A, SESSION_MS, 60_000, "consumer", (protocol,), requires_member_id=False
    )
    pending = server.submit(replace(join, member_id=None))
    server.advance(5_000)
    joined = pending.answer
    assert isinstance(joined, JoinGroupResponse)
    assigned = (MemberAssignment(A, b""),)
    server.ask(SyncGroup(CALLER, G, A, joined.generation, assigned))
    return ClassicHeartbeat(CALLER, G, A, joined.generation)


@pytest.mark.parametrize("by_server", [False, True])
@pytest.mark.parametrize("is_consumer_group", [False, True])
def test_a_classic_member_lives_by_what_it_says_alone(
    by_server: bool, is_consumer_group: bool
) -> None:
    server = VirtualServer({"foo": 2})
    if is_consumer_group:
        server.join("g", "other", [])
    heartbeat = replace(join_classic(server), by_server=by_server)
    answers = []
    for _ in range(5):
        server.advance(SESSION_MS // 4)
        answers.append(server.ask(heartbeat))
    assert isinstance(answers[-1], GroupError) == by_server
    assert not isinstance(answers[0], GroupError)


@pytest.mark.parametrize("by_server", [False, True])
def test_a_member_lives_by_what_it_says_alone(by_server: bool) -> None:
    server = VirtualServer({"foo": 2})
    server.join("g", "a", ["foo"])
    heartbeat = replace(server.heartbeat("g", "a", 2), by_server=by_server)
    answers = []
    for _ in range(6):
        server.advance(10_000)
        answers.append(server.ask(heartbeat))
    assert isinstance(answers[-1], GroupError) == by_server
    assert not isinstance(answers[0], GroupError)
