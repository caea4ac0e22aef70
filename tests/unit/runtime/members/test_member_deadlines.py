"""Deadlines of classic members in consumer groups, and conversions of their groups meanwhile."""

from __future__ import annotations

from model.caller import INTERNAL
from model.commands.classic import ClassicDeadline, ExpireClassicDeadline
from model.commands.consumer import ConsumerGroupLeave
from model.errors import RebalanceInProgress
from model.ids import MemberId
from tests.support.virtual.server import CALLER, VirtualServer
from tests.unit.runtime.members.test_signs_of_life import A, G, join_classic


def test_a_member_that_is_late_ends_no_phase_of_the_group_that_was_downgraded_before() -> None:
    """Trigger: both wait in a busy iteration. All members would be removed, with valid leases."""
    server = VirtualServer({"foo": 2})
    server.join("g", "other", ["foo"])
    heartbeat = join_classic(server)
    server.submit(ConsumerGroupLeave(CALLER, G, MemberId("other"), -1))
    for deadline in (ClassicDeadline.JOIN, ClassicDeadline.SYNC):
        server.submit(ExpireClassicDeadline(INTERNAL, G, deadline, A))
    server.settle()
    answer = server.ask(heartbeat)
    assert isinstance(answer, RebalanceInProgress)
