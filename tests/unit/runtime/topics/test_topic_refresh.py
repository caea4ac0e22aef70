"""A changed topic with very many subscribed groups."""

from __future__ import annotations

import pytest

from coordinator.runtime.targets import target_schedule
from coordinator.runtime.topics import topic_refresh
from model.caller import INTERNAL
from model.commands.topics import GrowTopic
from model.ids import TopicName
from tests.support.virtual.server import VirtualServer

GROUPS = [f"g{number}" for number in range(23)]


def test_groups_of_a_topic_look_and_get_targets_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_refresh, "SLICE", 5)
    monkeypatch.setattr(target_schedule, "GROUPS_IN_A_BATCH", 3)
    server = VirtualServer({"foo": 2})
    for group in GROUPS:
        server.join(group, "a", ["foo"])
    stats = server.runtime.stats
    bumps, installed = stats.rebalance_causes["partitions_added"], stats.targets_installed
    server.submit(GrowTopic(INTERNAL, TopicName("foo"), 4))
    most_bumps = most_installed = 0
    while stats.targets_installed - installed < len(GROUPS):
        assert server.scheduler.now_ms < 1_000
        before = stats.rebalance_causes["partitions_added"], stats.targets_installed
        server.scheduler.step()
        most_bumps = max(most_bumps, stats.rebalance_causes["partitions_added"] - before[0])
        most_installed = max(most_installed, stats.targets_installed - before[1])
    assert (
        stats.rebalance_causes["partitions_added"] - bumps
        == stats.targets_installed - installed
        == len(GROUPS)
    )
    assert (most_bumps, most_installed) == (5, 3)
    for group in GROUPS:
        answer = server.beat(server.heartbeat(group, "a", 2))
        assert server.names(answer.assignment) == {"foo": (0, 1, 2, 3)}


def test_a_restart_between_slices_forgets_no_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_refresh, "SLICE", 5)
    server = VirtualServer({"foo": 2})
    for group in GROUPS:
        server.join(group, "a", ["foo"])
    server.submit(GrowTopic(INTERNAL, TopicName("foo"), 4))
    for _ in range(3):
        server.scheduler.step()
    server.restart(survivors=1_000)
    server.settle()
    assert {server.group(group).group_epoch for group in GROUPS} == {3}
