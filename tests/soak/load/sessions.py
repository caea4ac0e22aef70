"""Members of the SDK that come and go, calls over gRPC, and watchers of the server's health."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

import muster
from muster import TopicPartition
from muster.v1 import admin_pb2, admin_pb2_grpc
from tests.soak.load.wire import SESSION_MS, TOPIC

_SOON_S: Final = 20.0


async def member(target: str, name: str) -> None:
    """One that joins, commits and closes; it reads all that its pattern matches."""
    client = muster.Client(target)
    async with (
        client,
        muster.Member(
            client, name, topic_regex=f"{TOPIC}|soaked-.*", client_id=name, rack_id=name
        ) as joined,
    ):
        await commit_what_is_assigned(joined)


async def classic_member(target: str, name: str) -> None:
    """The same of a classic group, alone in it, so that it leads."""
    client = muster.Client(target)
    async with (
        client,
        muster.ClassicMember(
            client,
            name,
            topics=[TOPIC],
            client_id=name,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=1_000,
        ) as joined,
    ):
        await commit_what_is_assigned(joined)


async def commit_what_is_assigned(joined: muster.Member | muster.ClassicMember) -> None:
    async with asyncio.timeout(_SOON_S):
        async for partitions in joined.changes():
            mine = sorted(partitions)[:3]
            if mine:
                await joined.commit(dict.fromkeys(mine, 7))
                await joined.fetch_offsets(mine)
                return


async def member_that_dies(target: str, name: str) -> None:
    """Its connection is gone without a leave: its session must end."""
    client = muster.Client(target)
    async with client:
        joined = muster.Member(
            client, name, topics=[TOPIC], client_id=name, max_poll_interval_ms=None
        )
        await joined.join()
        assert joined._engine is not None
        joined._engine.detach()


async def administration(target: str, name: str) -> None:
    """Topics and groups over gRPC, with request ids that come twice, and what is refused."""
    async with grpc.aio.insecure_channel(target) as channel:
        stub = admin_pb2_grpc.AdminServiceStub(channel)
        topic = f"of-no-pattern-{name}"
        create = admin_pb2.CreateTopicRequest(
            topic_name=topic, num_partitions=3, request_id=f"create-{name}"
        )
        await stub.CreateTopic(create)
        await stub.CreateTopic(create)
        await stub.ListTopics(admin_pb2.ListTopicsRequest(page_size=10))
        listed = await stub.ListGroups(admin_pb2.ListGroupsRequest(page_size=20))
        for row in listed.groups[:10]:
            with contextlib.suppress(grpc.aio.AioRpcError):
                await stub.DescribeGroup(admin_pb2.DescribeGroupRequest(group_id=row.group_id))
        await stub.AlterGroupConfigs(
            admin_pb2.AlterGroupConfigsRequest(
                group_id=name,
                changes=[admin_pb2.ConfigChange(name="consumer.max.size", value="7")],
            )
        )
        await stub.AlterGroupConfigs(
            admin_pb2.AlterGroupConfigsRequest(
                group_id=name, changes=[admin_pb2.ConfigChange(name="consumer.max.size")]
            )
        )
        with contextlib.suppress(grpc.aio.AioRpcError):
            await stub.DeleteGroup(admin_pb2.DeleteGroupRequest(group_id=f"no-{name}"))
        await stub.ListTransactions(admin_pb2.ListTransactionsRequest())
        await stub.DeleteTopic(
            admin_pb2.DeleteTopicRequest(topic_name=topic, request_id=f"delete-{name}")
        )


async def watches(target: str, name: str) -> None:
    """Watchers of the health service: one that says good-bye, one whose channel is closed."""
    async with grpc.aio.insecure_channel(target) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        polite = stub.Watch(health_pb2.HealthCheckRequest())
        await polite.read()
        polite.cancel()
        rude = stub.Watch(health_pb2.HealthCheckRequest())
        await rude.read()


async def offsets_after_all(target: str, name: str) -> None:
    """What is asked of a group that has gone."""
    async with muster.Client(target) as client:
        late = muster.Member(client, name, topics=[TOPIC])
        with contextlib.suppress(muster.MusterError):
            await late.fetch_offsets([TopicPartition(TOPIC, 0)])
