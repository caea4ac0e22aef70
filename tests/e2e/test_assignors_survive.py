"""What members name and what their assignors have for them is on the disk: kill -9 loses none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc.aio
import pytest

from muster.v1 import assignors_pb2, group_pb2, group_pb2_grpc, types_pb2
from tests.server import MusterServer
from tests.support.service.session_client import GROUP, SessionClient

MINE = assignors_pb2.ClientAssignor(
    name="mine", minimum_version=0, maximum_version=1, version=1, metadata=b"said"
)
ODD = bytes(range(256))


@asynccontextmanager
async def session(server: MusterServer) -> AsyncIterator[SessionClient]:
    async with grpc.aio.insecure_channel(server.grpc) as channel:
        client = SessionClient(group_pb2_grpc.GroupServiceStub(channel))
        yield client
        client.call.cancel()


async def prepare(client: SessionClient, epoch: int) -> assignors_pb2.PreparedAssignment:
    said = assignors_pb2.PrepareAssignment(member_epoch=epoch)
    await client.send(
        group_pb2.MemberAction(group_id=GROUP, member_id="a", prepare_assignment=said)
    )
    prepared = await client.expect("prepared_assignment")
    assert isinstance(prepared, assignors_pb2.PreparedAssignment)
    assert not prepared.HasField("error")
    return prepared


@pytest.mark.long
async def test_kill_9_between_prepare_and_install_and_after_it(tmp_path: Path) -> None:
    with MusterServer(tmp_path / "data", topics={"orders": 4}) as server:
        async with session(server) as client:
            assignment = await client.join("a", client_assignors=[MINE])
            epoch = assignment.member_epoch
            await client.expect("compute_assignment")
            before = await prepare(client, epoch)
            server.kill()
        await asyncio.to_thread(server.start)
        async with session(server) as client:
            # It is asked anew, for the same epoch, by what it named before.
            await client.join("a", member_epoch=epoch, client_assignors=[MINE])
            await client.expect("compute_assignment")
            prepared = await prepare(client, epoch)
            assert prepared == before
            assert prepared.members[0].metadata == b"said"
            everything = types_pb2.TopicPartitions(
                topic_id=prepared.topics[0].topic_id, partitions=range(4)
            )
            install = assignors_pb2.InstallAssignment(
                member_epoch=epoch,
                group_epoch=prepared.group_epoch,
                members=[
                    assignors_pb2.ComputedMember(
                        member_id="a", partitions=[everything], version=1, metadata=ODD
                    )
                ],
            )
            await client.send(
                group_pb2.MemberAction(group_id=GROUP, member_id="a", install_assignment=install)
            )
            # Durable from here on; the member has not heard of its partitions yet.
            assert not (await client.expect("installed_assignment")).HasField("error")
            server.kill()
        await asyncio.to_thread(server.start)
        async with session(server) as client:
            told = await client.join("a", member_epoch=epoch, client_assignors=[MINE])
            assert told.member_epoch == told.client_assignment.generation == prepared.group_epoch
            assert told.client_assignment.metadata == ODD
            (topic,) = told.assignment.topics
            assert list(topic.partitions) == [0, 1, 2, 3]
