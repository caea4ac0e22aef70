"""The entry after each thing that makes a consumer group rebalance."""

from __future__ import annotations

import pytest

from model.caller import INTERNAL
from model.commands.configs import AlterGroupConfigs, ConfigChange, ConfigOperation
from model.commands.freezes import FreezeGroup, ResumeGroup
from model.commands.topics import DeleteTopic, GrowTopic
from model.ids import GroupId, TopicName
from model.past.causes import CauseKind
from model.past.rebalances import Rebalance
from tests.support.virtual.server import CALLER, VirtualServer
from tests.unit.runtime.ledger import test_classic_ledger as classic
from tests.unit.runtime.ledger.test_rebalance_ledger import entries

G = GroupId("g")


@pytest.fixture
def server() -> VirtualServer:
    """A group with the member a, which has all of foo."""
    server = VirtualServer({"foo": 4})
    server.join("g", "a", ["foo"])
    server.settle()
    return server


def last(server: VirtualServer) -> Rebalance:
    server.settle()
    found = entries(server)[-1]
    assert found.epoch == server.group("g").group_epoch
    return found


def test_a_member_that_keeps_what_others_wait_for(server: VirtualServer) -> None:
    server.join("g", "b", ["foo"])
    server.beat(server.heartbeat("g", "a", 2))
    for _ in range(61):
        server.advance(1_000)
        for member in [each.member_id for each in server.group("g").members()]:
            epoch = 2 if member == "a" else 3
            server.ask(server.heartbeat("g", member, epoch))
    cause = last(server).cause
    assert (cause.kind, cause.member_id) == (CauseKind.REBALANCE_TIMEOUT, "a")
    assert cause.heartbeat_age_ms is not None
    assert cause.heartbeat_age_ms <= 1_000


def test_another_subscription(server: VirtualServer) -> None:
    server.create("bar", 2)
    server.beat(server.heartbeat("g", "a", 2, sub=["foo", "bar"]))
    found = last(server)
    assert (found.cause.kind, found.cause.member_id) == (CauseKind.SUBSCRIPTION_CHANGED, "a")
    assert found.moved == 2


def test_topics_that_change(server: VirtualServer) -> None:
    server.beat(server.heartbeat("g", "a", 2, sub=["foo", "bar"]))
    server.create("bar", 2)
    found = last(server)
    assert (found.cause.kind, found.cause.topic_name) == (CauseKind.TOPIC_CREATED, "bar")
    server.ask(GrowTopic(INTERNAL, TopicName("foo"), 6))
    found = last(server)
    assert (found.cause.kind, found.cause.topic_name) == (CauseKind.PARTITIONS_ADDED, "foo")
    assert found.moved is not None
    server.ask(DeleteTopic(INTERNAL, TopicName("bar")))
    found = last(server)
    assert (found.cause.kind, found.cause.topic_name) == (CauseKind.TOPIC_DELETED, "bar")


def test_another_assignor(server: VirtualServer) -> None:
    changes = (ConfigChange("consumer.assignors", ConfigOperation.SET, "range,uniform"),)
    server.ask(AlterGroupConfigs(CALLER, G, changes))
    found = last(server)
    assert (found.cause.kind, found.cause.member_id) == (CauseKind.ASSIGNOR_CHANGED, "")
    assert found.moved == 0


def test_a_freeze_and_its_end(server: VirtualServer) -> None:
    server.ask(FreezeGroup(CALLER, G))
    server.join("g", "b", ["foo"])
    server.beat(server.heartbeat("g", "a", 2))
    found = last(server)
    assert (found.cause.kind, found.moved) == (CauseKind.MEMBER_JOINED, 0)
    assert found.converged_ms is not None
    server.ask(ResumeGroup(CALLER, G))
    found = last(server)
    assert (found.cause.kind, found.moved) == (CauseKind.ADMINISTRATOR, 2)
    assert CALLER.principal in found.cause.reason


def test_a_migration_in_both_directions() -> None:
    server = classic.make_server()
    classic.join(server, "a")
    classic.sync(server, 1, "a")
    server.join("g", "b", ["foo"])
    up = last(server)
    assert (up.is_classic, up.cause.kind) == (False, CauseKind.MIGRATED)
    assert (up.epoch_before, up.epoch) == (1, 2)
    server.leave("g", "b")
    server.advance(1)
    classic.join(server, "a", is_known=True)
    classic.sync(server, 3, "a")
    down = classic.entries(server)[-1]
    assert (down.is_classic, down.cause.kind) == (True, CauseKind.MIGRATED)
    assert (down.cause.member_id, down.epoch_before, down.epoch) == ("b", 2, 3)
