"""A join phase without joined members goes on, and costs next to nothing."""

from __future__ import annotations

import pytest

from coordinator.core.classic import classic_leave
from coordinator.core.classic.classic_rebalance import LEAST_WAIT_MS
from coordinator.core.state.classic.classic_group import ClassicGroupState
from coordinator.core.state.outcome import Outcome
from model.commands.classic import JoinGroup, JoinProtocol, SyncGroup
from model.commands.consumer import LeaveGroup, LeavingMember
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, InstanceId, MemberId
from model.responses.classic import JoinGroupResponse
from tests.support.virtual.server import CALLER, VirtualServer

G = GroupId("g")
PROTOCOLS = (JoinProtocol("own", b""),)
SESSION_MS = 1_800_000


def join(instance: str) -> JoinGroup:
    return JoinGroup(
        CALLER,
        G,
        None,
        MemberId(instance),
        SESSION_MS,
        0,
        "own",
        PROTOCOLS,
        InstanceId(instance),
        requires_member_id=False,
    )


def test_a_rebalance_timeout_of_0_does_not_make_it_spin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trigger: a static member in a stable group, and one that joins and is removed again."""
    server = VirtualServer({}, settings=CoordinatorSettings(group_initial_rebalance_delay_ms=0))
    joined = server.submit(join("s"))
    while not joined.is_answered:
        server.scheduler.step()
    assert isinstance(joined.answer, JoinGroupResponse)
    generation = joined.answer.generation
    server.ask(SyncGroup(CALLER, G, MemberId("s"), generation, (), None, "own", "own"))
    server.submit(join("q"))
    leaving = LeavingMember(MemberId(""), InstanceId("q"))
    server.ask(LeaveGroup(CALLER, G, (leaving,)))
    ends = 0
    expire = classic_leave._expire_join

    def count(*args: object) -> Outcome:
        nonlocal ends
        ends += 1
        return expire(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(classic_leave, "_expire_join", count)
    server.advance(60_000)
    group = server.runtime._shard_of(G).classic_group(G)
    assert group is not None
    assert group.state is ClassicGroupState.PREPARING_REBALANCE
    assert 0 < ends <= 60_000 // LEAST_WAIT_MS + 1
