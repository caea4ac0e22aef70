"""Undo of resets, deletions and expiry against a real coordinator with its log on disk."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import grpc
import grpc.aio

from coordinator.service.admin.resets.past_offsets import compute_undone
from model.access.acls import Operation, ResourceType
from model.ids import GroupId, LogOffset, LogPartition, TopicName, compute_log_partition
from model.past.offset_changes import NO_OFFSET, OffsetChange, OffsetChangeKind
from muster.v1 import admin_pb2, group_pb2, reset_pb2, reset_pb2_grpc, types_pb2
from storage.log.trim import compute_trim_limit
from tests.golden.kafka_log import PARTITIONS
from tests.golden.past_server import PastServer, running_past_server
from tests.support.authorizers import Rights
from tests.support.trimming import trim_once
from tests.unit.service.admin.test_admin_service import info

Request = reset_pb2.ResetOffsetsRequest
Offsets = dict[tuple[str, int], int]


class Undos:
    """A client of the server, about one group."""

    def __init__(self, server: PastServer, stub: reset_pb2_grpc.ResetServiceAsyncStub) -> None:
        self.server, self.stub = server, stub

    async def commit(self, offsets: Offsets) -> None:
        request = group_pb2.CommitOffsetsRequest(group_id="g", topics=make_topics(offsets))
        assert not (await self.server.groups.CommitOffsets(request)).failures

    async def reset(self, offsets: Offsets) -> None:
        plan = reset_pb2.ResetPlan(topics=make_topics(offsets))
        await self.stub.ResetOffsets(Request(group_id="g", plan=plan, create_group=True))

    async def undo(self, change: int | None = None, **fields: object) -> Offsets:
        """The offsets that it set, -1 for none."""
        asked = reset_pb2.UndoChange(log_offset=change)
        request = Request(group_id="g", undo=asked, **fields)  # type: ignore[arg-type]
        done = await self.stub.ResetOffsets(request)
        return {(row.topic_name, row.partition): row.offset_after for row in done.partitions}

    async def fails(self, **fields: object) -> tuple[grpc.StatusCode, str]:
        request = Request(group_id="g", **fields)  # type: ignore[arg-type]
        code, detail = await info(self.stub.ResetOffsets(request))
        return code, detail.reason

    async def fetch(self) -> Offsets:
        found = await self.server.groups.FetchOffsets(group_pb2.FetchOffsetsRequest(group_id="g"))
        return {
            (topic.topic_name, row.partition): row.offset
            for topic in found.topics
            for row in topic.partitions
        }

    async def fetch_row(self) -> tuple[int | str, ...]:
        """Offset, metadata, and the leader epoch if there is one, of the only one."""
        found = await self.server.groups.FetchOffsets(group_pb2.FetchOffsetsRequest(group_id="g"))
        ((row,),) = (topic.partitions for topic in found.topics)
        epoch = (row.leader_epoch,) if row.HasField("leader_epoch") else ()
        return (row.offset, row.metadata, *epoch)

    async def list(self) -> reset_pb2.ListOffsetChangesResponse:
        request = reset_pb2.ListOffsetChangesRequest(group_id="g")
        return await self.stub.ListOffsetChanges(request)

    async def kinds(self) -> list[str]:
        changes = (await self.list()).changes
        names = (reset_pb2.OffsetChangeKind.Name(each.kind) for each in changes)
        return [name.removeprefix("OFFSET_CHANGE_KIND_").lower() for name in names]


def make_topics(offsets: Offsets) -> list[types_pb2.TopicOffsets]:
    return [
        types_pb2.TopicOffsets(
            topic_name=name,
            partitions=[
                types_pb2.PartitionOffset(partition=number, offset=offset)
                for (of, number), offset in offsets.items()
                if of == name
            ],
        )
        for name in dict.fromkeys(name for name, _ in offsets)
    ]


@asynccontextmanager
async def running(folder: Path, rights: Rights | None = None) -> AsyncIterator[Undos]:
    async with (
        running_past_server(folder / "store", authorizer=rights) as server,
        grpc.aio.insecure_channel(server.target) as channel,
    ):
        for name in ("orders", "payments"):
            request = admin_pb2.CreateTopicRequest(topic_name=name, num_partitions=4)
            await server.admin.CreateTopic(request)
        yield Undos(server, reset_pb2_grpc.ResetServiceStub(channel))


FIRST: Offsets = {("orders", 0): 10, ("orders", 1): 11, ("payments", 0): 12}


async def test_what_is_committed_beside_an_offset_comes_back_with_it(tmp_path: Path) -> None:
    async with running(tmp_path) as group:
        row = types_pb2.PartitionOffset(offset=10, leader_epoch=3, metadata="AQAAAYx")
        topics = [types_pb2.TopicOffsets(topic_name="orders", partitions=[row])]
        committed = group_pb2.CommitOffsetsRequest(group_id="g", topics=topics)
        await group.server.groups.CommitOffsets(committed)
        await group.reset({("orders", 0): 5})
        assert await group.fetch_row() == (5, "")
        await group.undo()
        assert await group.fetch_row() == (10, "AQAAAYx", 3)
        await group.server.admin.DeleteGroup(admin_pb2.DeleteGroupRequest(group_id="g"))
        await group.undo()
        assert await group.fetch_row() == (10, "AQAAAYx", 3)


async def test_a_reset_is_undone_exactly_and_the_undo_of_it_is_what_it_set(tmp_path: Path) -> None:
    async with running(tmp_path) as group:
        await group.commit(FIRST)
        await group.reset({("orders", 0): 5, ("orders", 2): 6, ("payments", 0): 12})
        after = await group.fetch()
        # What it set to where it was is not about the undo; what was not there is removed.
        assert await group.undo() == {("orders", 0): 10, ("orders", 2): -1}
        assert await group.fetch() == FIRST
        assert await group.undo() == {("orders", 0): 5, ("orders", 2): 6}
        assert await group.fetch() == after
        changes = (await group.list()).changes
        assert await group.kinds() == ["undo", "undo", "reset"]
        undone = [each.undoes if each.HasField("undoes") else None for each in changes]
        assert undone == [changes[1].log_offset, changes[2].log_offset, None]
        # An earlier one, by its name.
        assert await group.undo(changes[2].log_offset) == {("orders", 0): 10, ("orders", 2): -1}


async def test_a_deleted_group_comes_back_with_its_offsets(tmp_path: Path) -> None:
    async with running(tmp_path) as group:
        await group.commit(FIRST)
        await group.server.admin.DeleteGroup(admin_pb2.DeleteGroupRequest(group_id="g"))
        assert await group.fetch() == {}
        assert await group.kinds() == ["group_deleted"]
        assert await group.undo(validate_only=True) == FIRST
        assert await group.fetch() == {}
        assert await group.undo() == FIRST
        assert await group.fetch() == FIRST
        # The undo of that: it is as if it had not come back.
        assert set((await group.undo()).values()) == {-1}
        assert await group.fetch() == {}


async def test_deleted_offsets_come_back_and_what_was_committed_since_is_shown(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as group:
        await group.commit(FIRST)
        partitions = types_pb2.TopicPartitions(topic_name="orders", partitions=[0, 1])
        request = admin_pb2.DeleteOffsetsRequest(group_id="g", topics=[partitions])
        await group.server.admin.DeleteOffsets(request)
        await group.commit({("orders", 1): 15, ("payments", 0): 20})
        asked = Request(group_id="g", undo=reset_pb2.UndoChange(), validate_only=True)
        shown = await group.stub.ResetOffsets(asked)
        assert shown.undone == (await group.list()).changes[0]
        rows = [
            (
                row.partition,
                row.offset_before if row.HasField("offset_before") else None,
                row.offset_changed if row.HasField("offset_changed") else None,
                row.offset_after,
            )
            for row in shown.partitions
        ]
        assert rows == [(0, None, None, 10), (1, 15, None, 11)]
        # Stale: somebody commits after the preview.
        await group.commit({("orders", 1): 16})
        stale = await group.fails(undo=reset_pb2.UndoChange(), preview=shown.preview)
        assert stale == (grpc.StatusCode.FAILED_PRECONDITION, "POLICY_VIOLATION")
        # Some of it.
        some = types_pb2.TopicPartitions(topic_name="orders", partitions=[0])
        assert await group.undo(topics=[some]) == {("orders", 0): 10}
        assert await group.fetch() == {
            ("orders", 0): 10,
            ("orders", 1): 16,
            ("payments", 0): 20,
        }


async def test_nothing_to_undo_says_why(tmp_path: Path) -> None:
    async with running(tmp_path) as group:
        await group.commit(FIRST)
        nothing = (grpc.StatusCode.NOT_FOUND, "RESOURCE_NOT_FOUND")
        assert await group.fails(undo=reset_pb2.UndoChange()) == nothing
        await group.reset(FIRST)
        assert await group.fails(undo=reset_pb2.UndoChange()) == nothing
        assert await group.fails(undo=reset_pb2.UndoChange(log_offset=1 << 40)) == nothing
        await group.reset({("payments", 3): 3})
        await group.server.admin.DeleteTopic(admin_pb2.DeleteTopicRequest(topic_name="payments"))
        assert await group.fails(undo=reset_pb2.UndoChange()) == nothing
        elsewhere = types_pb2.TopicPartitions(topic_name="orders", partitions=[3])
        assert await group.fails(undo=reset_pb2.UndoChange(), topics=[elsewhere]) == nothing
        bad = await group.fails(undo=reset_pb2.UndoChange(log_offset=-1))
        assert bad == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST")


async def test_what_the_history_has_no_more_cannot_be_undone(tmp_path: Path) -> None:
    partition = LogPartition(compute_log_partition(GroupId("g"), PARTITIONS))
    async with running(tmp_path) as group:
        await group.commit(FIRST)
        await group.reset({("orders", 0): 1})
        await group.reset({("orders", 0): 2})
        first, second = (each.log_offset for each in reversed((await group.list()).changes))
        assert not (await group.list()).HasField("since_ms")
        store = group.server.store
        for _ in store.write_checkpoint(100):
            pass
        limit = compute_trim_limit(store, partition)
        assert limit == second
        assert trim_once(store, partition, limit)
        listed = await group.list()
        assert [each.log_offset for each in listed.changes] == [second]
        assert listed.HasField("since_ms")
        gone = Request(group_id="g", undo=reset_pb2.UndoChange(log_offset=first))
        with_detail = await group.fails(undo=gone.undo)
        assert with_detail == (grpc.StatusCode.NOT_FOUND, "RESOURCE_NOT_FOUND")
        assert await group.undo() == {("orders", 0): 1}


async def test_who_may(tmp_path: Path) -> None:
    rights = Rights()
    async with running(tmp_path, rights) as group:
        await group.commit(FIRST)
        await group.reset({("orders", 0): 1})
        rights.denied.add((Operation.READ, ResourceType.TOPIC, "orders"))
        denied = await group.fails(undo=reset_pb2.UndoChange())
        assert denied[0] is grpc.StatusCode.PERMISSION_DENIED
        rights.denied.add((Operation.DESCRIBE, ResourceType.GROUP, "g"))
        request = reset_pb2.ListOffsetChangesRequest(group_id="g")
        code, _ = await info(group.stub.ListOffsetChanges(request))
        assert code is grpc.StatusCode.PERMISSION_DENIED


async def test_pages_of_changes(tmp_path: Path) -> None:
    async with running(tmp_path) as group:
        for offset in range(5):
            await group.reset({("orders", 0): offset})
        every = (await group.list()).changes
        request = reset_pb2.ListOffsetChangesRequest(group_id="g", page_size=2)
        found: list[int] = []
        for _ in range(3):
            page = await group.stub.ListOffsetChanges(request)
            found += [each.log_offset for each in page.changes]
            request.page_token = page.next_page_token
        assert not request.page_token
        assert found == [each.log_offset for each in every]
        bad = reset_pb2.ListOffsetChangesRequest(group_id="g", page_token="no")
        code, _ = await info(group.stub.ListOffsetChanges(bad))
        assert code is grpc.StatusCode.INVALID_ARGUMENT


def test_commits_between_the_writes_of_a_deletion_are_not_undone() -> None:
    before = {(TopicName("t"), number): 10 + number for number in range(4)}
    after = {(TopicName("t"), 0): 99, (TopicName("t"), 7): 1}
    change = OffsetChange(
        OffsetChangeKind.OFFSETS_DELETED, 0, "User:a", LogOffset(5), LogOffset(50), 3
    )
    undone = compute_undone(change, before, after)
    assert undone.wanted == {(TopicName("t"), number): 10 + number for number in (1, 2, 3)}
    assert undone.left == {}
    as_reset = compute_undone(replace(change, kind=OffsetChangeKind.RESET), before, after)
    assert as_reset.wanted == before | {(TopicName("t"), 7): NO_OFFSET}
    assert as_reset.left == after
