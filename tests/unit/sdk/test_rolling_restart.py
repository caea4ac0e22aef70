"""A rolling restart of members without instance ids, with a grace period and without one."""

from __future__ import annotations

import muster
from muster.v1 import admin_pb2, explain_pb2, explain_pb2_grpc
from tests.support.service.stand import Stand
from tests.support.waiting import until
from tests.unit.sdk.test_member import make_member
from tests.unit.sdk.watcher import Ledger

MEMBERS = 20
PARTITIONS = 40


async def _join(stand: Stand, ledger: Ledger, name: str) -> muster.Member:
    member = make_member(stand, ledger, name, client_id="worker", topics=["tasks"])
    await member.join()
    return member


async def _fetch_epoch(stand: Stand) -> int:
    request = admin_pb2.DescribeGroupRequest(group_id="billing")
    return (await stand.admin_stub().DescribeGroup(request)).group.group_epoch


async def _explain(stand: Stand, since_epoch: int) -> list[explain_pb2.Rebalance]:
    """What the server's ledger says of the epochs after this one, the first of them first."""
    stub = explain_pb2_grpc.ExplainServiceStub(stand.channel())
    request = explain_pb2.ExplainGroupRequest(group_id="billing", page_size=1_000)
    found = (await stub.ExplainGroup(request)).rebalances
    return [each for each in reversed(found) if each.epoch > since_epoch]


async def _restart_one_by_one(
    stand: Stand, ledger: Ledger, *, moves: bool = False
) -> tuple[int, set[str], list[explain_pb2.Rebalance]]:
    """How many epochs it cost, the live members that lost or gained partitions, and the causes.

    ``moves``: a member comes back when the others have its partitions.
    """
    await stand.create_topic("tasks", PARTITIONS)
    members = [await _join(stand, ledger, f"old{number}") for number in range(MEMBERS)]
    await until(lambda: all(len(m.assignment) == PARTITIONS // MEMBERS for m in members))
    epoch, moved = await _fetch_epoch(stand), set[str]()
    for number, old in enumerate(members):
        begin = len(ledger.events)
        await old.close()
        if moves:
            rest = [member for member in members if member is not old]
            await until(lambda: sum(len(m.assignment) for m in rest) == PARTITIONS)  # noqa: B023
        new = members[number] = await _join(stand, ledger, f"new{number}")
        await until(lambda: all(len(m.assignment) == PARTITIONS // MEMBERS for m in members))
        restarted = {f"old{number}", f"new{number}"}
        moved |= {name for name, _, _ in ledger.events[begin:]} - restarted
        assert new.assignment
    cost, told = await _fetch_epoch(stand) - epoch, await _explain(stand, epoch)
    for member in members:
        await member.close()
    return cost, moved, told


async def test_with_a_grace_period_nothing_moves_and_no_epoch_is_spent(stand: Stand) -> None:
    change = admin_pb2.ConfigChange(name="consumer.leave.grace.ms", value="30000")
    request = admin_pb2.AlterGroupConfigsRequest(group_id="billing", changes=[change])
    await stand.admin_stub().AlterGroupConfigs(request)
    cost, moved, told = await _restart_one_by_one(stand, Ledger())
    assert (cost, moved, told) == (0, set(), [])


async def test_without_one_each_restart_is_a_rebalance(stand: Stand) -> None:
    cost, moved, told = await _restart_one_by_one(stand, Ledger(), moves=True)
    assert cost >= 2 * MEMBERS
    assert moved
    # The ledger names each member that went and each that came.
    for cause in (
        explain_pb2.REBALANCE_CAUSE_MEMBER_LEFT,
        explain_pb2.REBALANCE_CAUSE_MEMBER_JOINED,
    ):
        of_cause = [each for each in told if each.cause == cause]
        assert len(of_cause) == len({each.member_id for each in of_cause}) == MEMBERS
        assert all(each.partitions_moved >= PARTITIONS // MEMBERS for each in of_cause)
        assert {(each.client_id, each.client_host) for each in of_cause} == {
            ("worker", "/127.0.0.1")
        }
