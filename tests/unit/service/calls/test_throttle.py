"""Client quotas over gRPC: what is refused and told when to come again, and what is not."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import grpc
import grpc.aio
import pytest
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from coordinator.service.wire.error_statuses import DETAILS_KEY, PUSHBACK_KEY
from model.access.quotas import QuotaEntity
from model.errors import ErrorCode
from muster.v1 import admin_pb2, classic_pb2, group_pb2, quota_pb2, quota_pb2_grpc, types_pb2
from security.quotas.address_limits import AddressLimits, make_limits
from security.quotas.client_quotas import ClientQuotas
from tests.support.service.stand import Stand, running_stand

ANONYMOUS = QuotaEntity("ANONYMOUS")
SUBSCRIPTION = group_pb2.Subscription(subscribed_topic_names=["orders"])


def quotas_of(entity: QuotaEntity = ANONYMOUS, **limits: float) -> ClientQuotas:
    quotas = ClientQuotas()
    quotas.index.put(entity, limits)
    return quotas


def make_commit(offset: int, client_id: str = "c") -> group_pb2.CommitOffsetsRequest:
    partition = types_pb2.PartitionOffset(partition=0, offset=offset)
    topic = types_pb2.TopicOffsets(topic_name="orders", partitions=[partition])
    return group_pb2.CommitOffsetsRequest(group_id="g", topics=[topic], client_id=client_id)


async def refusal_of(call: Any) -> tuple[float, float, str]:
    """The seconds to wait by both ways to say it, and the reason."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    trailers = dict(caught.value.trailing_metadata() or ())
    status = Status.FromString(trailers[DETAILS_KEY])
    info, retry = ErrorInfo(), RetryInfo()
    assert status.details[0].Unpack(info)
    assert status.details[1].Unpack(retry)
    pushback_s = int(trailers[PUSHBACK_KEY]) / 1_000
    return retry.retry_delay.ToMilliseconds() / 1_000, pushback_s, info.reason


async def test_commits_over_the_quota_are_refused_and_change_nothing() -> None:
    async with running_stand(quotas=quotas_of(commit_rate=1.0)) as stand:
        stub = stand.group_stub()
        for offset in range(1, 11):
            assert not (await stub.CommitOffsets(make_commit(offset))).HasField("error")
        delay_s, pushback_s, reason = await refusal_of(stub.CommitOffsets(make_commit(99)))
        assert 0 < delay_s <= 1
        assert delay_s == pushback_s
        assert reason == "THROTTLING_QUOTA_EXCEEDED"
        found = await stub.FetchOffsets(group_pb2.FetchOffsetsRequest(group_id="g"))
        assert found.topics[0].partitions[0].offset == 10
        await asyncio.sleep(pushback_s + 0.05)
        assert not (await stub.CommitOffsets(make_commit(100))).HasField("error")


async def test_ids_that_no_group_can_have_are_not_kept() -> None:
    quotas = quotas_of(groups_max=100, members_max=100)
    async with running_stand(quotas=quotas) as stand:
        stub = stand.group_stub()
        for number in range(5):
            commit = make_commit(1)
            commit.group_id = f"{number}" * 1_000_000
            assert (await stub.CommitOffsets(commit)).error.reason == "INVALID_GROUP_ID"
            beat = group_pb2.HeartbeatRequest(
                group_id="g", member_id=f"{number}" * 1_000_000, subscription=SUBSCRIPTION
            )
            assert (await stub.Heartbeat(beat)).error.reason == "INVALID_REQUEST"
        assert not quotas.holdings._by_user or not quotas.holdings._by_user["ANONYMOUS"].noted


async def test_heartbeats_are_answered_later_and_never_refused() -> None:
    async with running_stand(quotas=quotas_of(request_rate=2.0, join_rate=1_000.0)) as stand:
        stub = stand.group_stub()
        subscription = group_pb2.Subscription(subscribed_topic_names=["orders"])
        joined = await stub.Heartbeat(
            group_pb2.HeartbeatRequest(
                group_id="g",
                member_id="m",
                rebalance_timeout_ms=10_000,
                subscription=subscription,
            )
        )
        assert joined.member_epoch > 0
        beat = group_pb2.HeartbeatRequest(
            group_id="g", member_id="m", member_epoch=joined.member_epoch
        )
        began = time.monotonic()
        answers = [await stub.Heartbeat(beat) for _ in range(21)]
        assert not any(answer.HasField("error") for answer in answers)
        assert time.monotonic() - began >= 0.4
        admin = stand.admin_stub()
        assert (await refusal_of(admin.ListTopics(admin_pb2.ListTopicsRequest())))[0] > 0


async def test_joins_have_their_own_quota() -> None:
    async with running_stand(quotas=quotas_of(join_rate=0.1)) as stand:
        stub = stand.group_stub()

        def join(member: str) -> Any:
            return stub.Heartbeat(
                group_pb2.HeartbeatRequest(
                    group_id="g",
                    member_id=member,
                    rebalance_timeout_ms=10_000,
                    subscription=SUBSCRIPTION,
                )
            )

        assert not (await join("m1")).HasField("error")
        assert (await refusal_of(join("m2")))[0] > 5
        classic = stand.classic_stub()
        request = classic_pb2.JoinGroupRequest(group_id="h", client_id="c")
        assert (await refusal_of(classic.JoinGroup(request)))[2] == "THROTTLING_QUOTA_EXCEEDED"
        assert set(await stand.members("g")) == {"m1"}


async def test_an_address_is_limited_whatever_the_client_id() -> None:
    async with running_stand(quotas=quotas_of(QuotaEntity(ip="127.0.0.1"), commit_rate=1.0)) as it:
        stub = it.group_stub()
        for number in range(10):
            await stub.CommitOffsets(make_commit(number, f"client-{number}"))
        await refusal_of(stub.CommitOffsets(make_commit(10, "another")))


async def test_a_client_id_is_limited_and_others_are_not() -> None:
    async with running_stand(quotas=quotas_of(QuotaEntity(client_id="c"), commit_rate=1.0)) as it:
        stub = it.group_stub()
        for number in range(10):
            await stub.CommitOffsets(make_commit(number))
        await refusal_of(stub.CommitOffsets(make_commit(10)))
        assert not (await stub.CommitOffsets(make_commit(11, "d"))).HasField("error")


async def test_groups_and_members_that_a_user_may_make() -> None:
    async with running_stand(quotas=quotas_of(members_max=1, groups_max=1)) as stand:
        stub = stand.group_stub()

        async def join(group: str, member: str) -> str:
            request = group_pb2.HeartbeatRequest(
                group_id=group,
                member_id=member,
                rebalance_timeout_ms=10_000,
                subscription=SUBSCRIPTION,
            )
            try:
                answer = await stub.Heartbeat(request)
            except grpc.aio.AioRpcError as error:
                return str(error.details()).partition(":")[0]
            return str(answer.error.reason)

        assert await join("g", "m1") == ""
        assert await join("g", "m2") == "GROUP_MAX_SIZE_REACHED"
        assert await join("h", "m1") == "POLICY_VIOLATION"
        request = make_commit(1)
        request.group_id = "h"
        with pytest.raises(grpc.aio.AioRpcError):
            await stub.CommitOffsets(request)


async def ask(stream: Any, *actions: group_pb2.MemberAction) -> Any:
    await stream.write(group_pb2.SessionRequest(actions=actions))


async def update_of(stream: Any, kind: str) -> Any:
    """The next update of this kind."""
    while True:
        message = await asyncio.wait_for(stream.read(), 10)
        assert message is not grpc.aio.EOF
        for update in message.updates:
            if update.HasField(kind):
                return getattr(update, kind)


def make_join(member: str) -> group_pb2.MemberAction:
    subscription = group_pb2.Subscription(subscribed_topic_names=["orders"])
    join = group_pb2.Join(rebalance_timeout_ms=10_000, subscription=subscription, join_id=1)
    return group_pb2.MemberAction(group_id="g", member_id=member, join=join)


async def test_a_session_refuses_commits_over_the_quota_and_keeps_its_member() -> None:
    async with running_stand(quotas=quotas_of(commit_rate=1.0)) as stand:
        stream = stand.group_stub().Session()
        await ask(stream, make_join("m"))
        epoch = (await update_of(stream, "assignment")).member_epoch
        partition = types_pb2.PartitionOffset(partition=0, offset=5)
        topic = types_pb2.TopicOffsets(topic_name="orders", partitions=[partition])
        errors = []
        for number in range(12):
            commit = group_pb2.Commit(correlation_id=number, member_epoch=epoch, topics=[topic])
            action = group_pb2.MemberAction(group_id="g", member_id="m", commit=commit)
            await ask(stream, action)
            errors.append((await update_of(stream, "commit_result")).error)
        assert {error.error_code for error in errors[:10]} == {0}
        assert errors[11].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        assert 0 < errors[11].retry_after_ms <= 2_000
        assert set(await stand.members("g")) == {"m"}
        stream.cancel()


async def test_a_session_is_told_when_its_member_may_join() -> None:
    async with running_stand(quotas=quotas_of(join_rate=0.1)) as stand:
        stream = stand.group_stub().Session()
        await ask(stream, make_join("m1"))
        await update_of(stream, "assignment")
        await ask(stream, make_join("m2"))
        refused = await update_of(stream, "refused")
        assert refused.retriable
        assert refused.error.retry_after_ms > 5_000
        stream.cancel()


async def test_an_address_has_so_many_sessions() -> None:
    async with running_stand(sessions_per_ip=AddressLimits(1)) as stand:
        first = stand.group_stub().Session()
        await ask(first, make_join("m1"))
        await update_of(first, "assignment")
        second = stand.group_stub().Session()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await use_up(second)
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        first.cancel()
        third = await until_opened(stand)
        third.cancel()


async def test_an_address_with_a_limit_of_its_own_has_it_for_sessions_too() -> None:
    async with running_stand(sessions_per_ip=make_limits(0, "127.0.0.1:1")) as stand:
        first = stand.group_stub().Session()
        await ask(first, make_join("m1"))
        await update_of(first, "assignment")
        second = stand.group_stub().Session()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await use_up(second)
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "1 sessions are open" in (caught.value.details() or "")
        first.cancel()


async def use_up(stream: Any) -> None:
    await ask(stream, make_join("m2"))
    while await stream.read() is not grpc.aio.EOF:
        pass


async def until_opened(stand: Stand) -> Any:
    """A session, as soon as the server has seen that another one has ended."""
    while True:
        stream = stand.group_stub().Session()
        try:
            await ask(stream, make_join("m3"))
            await update_of(stream, "assignment")
        except (grpc.aio.AioRpcError, AssertionError):
            await asyncio.sleep(0.01)
            continue
        return stream


async def test_quotas_are_listed_and_altered() -> None:
    async with running_stand() as stand:
        stub = quota_pb2_grpc.QuotaServiceStub(stand.channel())
        both = quota_pb2.QuotaEntity(user="a", client_id="")
        change = quota_pb2.QuotaChange(key="commit_rate", value=2.5)
        request = quota_pb2.AlterQuotasRequest(entity=both, changes=[change], validate_only=True)
        await stub.AlterQuotas(request)
        assert not (await stub.ListQuotas(quota_pb2.ListQuotasRequest())).entities
        request.validate_only = False
        await stub.AlterQuotas(request)
        (found,) = (await stub.ListQuotas(quota_pb2.ListQuotasRequest())).entities
        assert found.entity == both
        assert [(quota.key, quota.value) for quota in found.quotas] == [("commit_rate", 2.5)]
        of_another = quota_pb2.ListQuotasRequest(entity=quota_pb2.QuotaEntity(user="b"))
        assert not (await stub.ListQuotas(of_another)).entities
        for bad in (
            quota_pb2.AlterQuotasRequest(changes=[change]),
            quota_pb2.AlterQuotasRequest(entity=quota_pb2.QuotaEntity(ip="host"), changes=[change]),
            quota_pb2.AlterQuotasRequest(
                entity=both, changes=[quota_pb2.QuotaChange(key="x", value=1)]
            ),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stub.AlterQuotas(bad)
            assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        await stub.AlterQuotas(
            quota_pb2.AlterQuotasRequest(
                entity=both, changes=[quota_pb2.QuotaChange(key="commit_rate")]
            )
        )
        assert not (await stub.ListQuotas(quota_pb2.ListQuotasRequest())).entities
