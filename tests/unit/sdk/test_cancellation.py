"""Tasks of the application that are cancelled, and what it awaits that is."""

from __future__ import annotations

import asyncio

import grpc
import grpc.aio
import pytest

import muster
from muster.connection.unary import ask
from muster.membership import Partitions
from muster.v1 import group_pb2
from tests.support.service.stand import Stand
from tests.support.waiting import until
from tests.unit.sdk.classic.classic_stand import classic_stand, make_classic, until_shared
from tests.unit.sdk.test_member import ALL, make_member


async def sleep_for_ever() -> None:
    await asyncio.sleep(3_600)


class Revoking:
    """An application that stops its worker as people write it; CancelledError comes out."""

    def __init__(self) -> None:
        self.worker = asyncio.create_task(sleep_for_ever())

    async def on_revoked(self, event: str, partitions: Partitions) -> None:
        if event == "revoked":
            self.worker.cancel()
            await self.worker


async def test_a_callback_that_awaits_a_cancelled_task_has_failed(stand: Stand) -> None:
    first = make_member(stand, name="a", hold=Revoking().on_revoked)
    await first.join()
    await until(lambda: first.assignment == ALL)
    async with make_member(stand, name="b") as second:
        await until(lambda: len(second.assignment) == 2)
        with pytest.raises(muster.CallbackFailed, match="on_revoked"):
            first.poll()
        await first.close()
        await until(lambda: second.assignment == ALL)


async def test_a_plain_callback_that_asks_a_cancelled_future_has_failed(stand: Stand) -> None:
    future = asyncio.get_running_loop().create_future()
    future.cancel()
    member = muster.Member(
        stand.target, "g", topics=["orders"], on_assigned=lambda _: future.result()
    )
    async with member:
        await until(lambda: member.assignment == ALL)
        with pytest.raises(muster.CallbackFailed, match="on_assigned"):
            member.poll()


async def test_a_classic_member_outlives_such_a_callback() -> None:
    async with classic_stand() as stand:
        first = make_classic(stand, name="a", hold=Revoking().on_revoked)
        await first.join()
        await until(lambda: first.assignment == ALL)
        async with make_classic(stand, name="b") as second:
            await until_shared(first, second)
            with pytest.raises(muster.CallbackFailed, match="on_revoked"):
                first.poll()
            await first.close()


@pytest.mark.parametrize("is_shared", [False, True])
async def test_a_close_that_is_cancelled_leaves_nobody_behind(
    stand: Stand, is_shared: bool
) -> None:
    """Others on its stream would renew it for ever; else it would last a session."""
    other = muster.Member(stand.target, "another", topics=["orders"])
    if is_shared:
        await other.join()

    async def hold(event: str, partitions: Partitions) -> None:
        if event == "revoked":
            await sleep_for_ever()

    member = make_member(stand, hold=hold)
    await member.join()
    await until(lambda: member.assignment == ALL)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(member.close(), 0.05)
    await stand.until_empty("billing")
    assert member.assignment == frozenset()
    if is_shared:
        await other.close()


@pytest.mark.parametrize("turns", range(1, 16, 2))
@pytest.mark.parametrize("is_shared", [False, True])
async def test_a_join_that_is_cancelled_leaves_nobody_behind(
    stand: Stand, is_shared: bool, turns: int
) -> None:
    other = muster.Member(stand.target, "another", topics=["orders"])
    if is_shared:
        await other.join()
    member = make_member(stand)
    joining = asyncio.create_task(member.join())
    for _ in range(turns):
        await asyncio.sleep(0.001)
    joining.cancel()
    await asyncio.gather(joining, return_exceptions=True)
    if not joining.cancelled():
        await member.close()
    await stand.until_empty("billing")
    if is_shared:
        await other.close()


async def test_a_connection_that_is_closed_under_a_call_cancels_nobody(stand: Stand) -> None:
    """A member beside others: one that finds the server silent replaces the connection of all."""
    client = muster.Client(stand.target)
    # Nobody listens there: the call waits for a connection, which is closed under it.
    other = muster.Client("127.0.0.1:1")
    request = group_pb2.FetchOffsetsRequest(group_id="g")
    asking = asyncio.create_task(ask(other.stub.FetchOffsets, request, wait_for_ready=True))
    await asyncio.sleep(0.05)
    await other.close()
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await asking
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    # Who is cancelled itself hears that.
    asking = asyncio.create_task(ask(client.stub.FetchOffsets, request))
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.wait((asking,))
    assert asking.cancelled()
    await client.close()


async def test_what_was_lost_and_got_again_is_shown_as_missing_once(stand: Stand) -> None:
    """Somebody else may have had it: whoever reads on must begin where was committed."""
    async with make_member(stand) as member:
        await until(lambda: member.assignment == ALL)
        changes = member.changes()
        assert await anext(changes) == ALL
        assert member._engine is not None
        membership = member._engine.membership
        gone = frozenset({muster.TopicPartition("orders", 1)})
        membership.assignment = dict(membership.owned)
        membership.finish_revoke(gone)
        membership.begin_assign(gone)
        assert await anext(changes) == ALL - gone
        assert await anext(changes) == ALL
