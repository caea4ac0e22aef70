"""Newcomers that take over the partitions of members that have gone, which may be very many."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from coordinator.core.consumer.leave_grace import find_reserved
from model.caller import INTERNAL
from model.commands.configs import AlterGroupConfigs, ConfigChange, ConfigOperation
from model.commands.consumer import ConsumerGroupHeartbeat
from model.ids import GroupId
from tests.cost.counting import check_linear
from tests.support.virtual.server import CALLER, VirtualServer

G = "g"


def newcomers_of_another_client(n: int) -> Callable[[], Any]:
    """n members have gone, and n of another client, whose ids come after theirs: n newcomers."""
    server = VirtualServer({"foo": 1})
    grace = ConfigChange("consumer.leave.grace.ms", ConfigOperation.SET, "60000")
    server.ask(AlterGroupConfigs(INTERNAL, GroupId(G), (grace,)))

    def join(name: str, client: str) -> ConsumerGroupHeartbeat:
        command = server.join_command(G, name, ["foo"])
        return replace(command, caller=replace(CALLER, client_id=client))

    for number in range(n):
        server.beat(join(f"a{number}", "one"))
        server.beat(join(f"b{number}", "other"))
    for number in range(n):
        server.leave(G, f"a{number}")
        server.leave(G, f"b{number}")
    group, joins = server.group(G), [join(f"c{number}", "other") for number in range(n)]

    def work() -> None:
        for command in joins:
            found = find_reserved(group, command)
            assert found is not None
            assert found.member_id == "b0"

    return work


def test_newcomers_are_not_compared_with_each_that_has_gone() -> None:
    """Bug: a restart of 1,000 members at once cost a million comparisons."""
    check_linear(newcomers_of_another_client, 50)
