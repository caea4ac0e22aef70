"""A ticket is valid while the core would give a heartbeat the same response."""

from __future__ import annotations

import pytest

from model.ids import GroupId, MemberId
from tests.support.virtual.server import VirtualServer
from tests.unit.runtime.targets.test_targets import OUT_OF_LINE, failing_uniform

G, A = GroupId("g"), MemberId("a")


def settled() -> VirtualServer:
    server = VirtualServer({"foo": 2})
    server.join("g", "a", ["foo"])
    server.beat(server.heartbeat("g", "a", 2, owned={"foo": (0, 1)}))
    return server


def test_a_ticket_keeps_its_member_alive() -> None:
    server = settled()
    ticket = server.runtime.ticket(G, A)
    assert ticket is not None
    server.advance(44_000)
    assert ticket.touch(server.scheduler.now_ms)
    server.advance(44_000)
    assert ticket.is_valid()
    server.advance(2_000)
    assert not ticket.is_valid()
    assert not ticket.touch(server.scheduler.now_ms)


def test_a_ticket_dies_with_any_change_of_its_group_and_not_with_commits() -> None:
    server = settled()
    ticket = server.runtime.ticket(G, A)
    assert ticket is not None
    server.ask(server.commit_command("g", "a", 2, "foo", {0: 1}))
    assert ticket.is_valid()
    server.join("other", "b", ["foo"])
    assert ticket.is_valid()
    server.join("g", "b", ["foo"])
    assert not ticket.is_valid()


def test_there_is_none_for_what_is_not_durable_or_not_there() -> None:
    server = settled()
    assert server.runtime.ticket(G, MemberId("nobody")) is None
    server.scheduler.blocking_ms = lambda: 10
    server.submit(server.join_command("g", "b", ["foo"]))
    server.advance(1)
    assert server.runtime.ticket(G, A) is None


def test_there_is_none_while_a_target_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bug: after a failed assignor, heartbeats that should retry it did not reach the core."""
    server = VirtualServer({"foo": 2}, settings=OUT_OF_LINE)
    with failing_uniform(monkeypatch, server, 1):
        server.join("g", "a", ["foo"])
        assert server.runtime.ticket(G, A) is None
        server.beat(server.heartbeat("g", "a", 1))
    assert server.group("g").target_epoch == 2
