"""History workers: limited, reused, and ended with their caller."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from coordinator.runtime.as_of import history_reads, log_reads, reader_places, worker_process
from coordinator.runtime.as_of.history_reads import (
    HistoryBusy,
    HistoryError,
    HistoryReads,
    HistoryReadSettings,
    HistoryTimedOut,
    HistoryUnavailable,
    PositionInFuture,
    PositionNotKept,
)
from coordinator.runtime.runtime import Runtime
from model.caller import INTERNAL
from model.commands.groups import ConsumerGroupDescribe
from model.commands.offsets import OffsetCommit, OffsetFetch, TopicOffsets, TopicToFetch
from model.commands.topics import CreateTopic, DeleteTopic
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import UnknownServerError
from model.ids import GroupId, LogOffset, LogPartition, MemberId, TopicId, TopicName
from model.log.commit_records import make_offset_columns
from model.past.as_of import AsOf, AsOfOffset, AsOfTimestamp
from model.responses.offsets import OffsetFetchResponse
from storage.log.trim import compute_trim_limit
from storage.rocks.rocks_opening import open_store
from storage.rocks.rocks_store import RocksLogStore
from tests.support.storage.appends import write_checkpoint
from tests.support.trimming import trim_once
from tests.support.waiting import until
from tests.unit.runtime.as_of.history_processes import (
    NEVER_ANSWERS,
    SLOW_WHILE_A_FILE_IS_THERE,
    WITHIN_S,
    children,
)

G = GroupId("g")
T = TopicName("orders")
T_ID = TopicId(bytes(range(16)))
P = LogPartition(0)


class Stand:
    """A coordinator on a disk, and the reader of its past."""

    def __init__(self, store: RocksLogStore, runtime: Runtime, reads: HistoryReads) -> None:
        self.store = store
        self.runtime = runtime
        self.reads = reads

    async def commit(self, offset: int, group: GroupId = G) -> None:
        topics = (TopicOffsets(T, None, make_offset_columns([(0, offset, -1, "")])),)
        await self.runtime.call(OffsetCommit(INTERNAL, group, MemberId(""), None, topics))

    async def fetch(
        self, as_of: AsOf, group: GroupId = G, holder: str = ""
    ) -> list[tuple[TopicName | None, int]]:
        """Topics and the offsets of their first partition."""
        command = OffsetFetch(INTERNAL, group, None)
        answer = await self.reads.read(group, as_of, (command,), holder)
        (response,) = answer.responses
        assert isinstance(response, OffsetFetchResponse)
        return [(topic.name, topic.partitions[0].offset) for topic in response.topics]


@pytest.fixture(autouse=True)
def leaves_nothing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """However a worker ends, the files it wrote to read the store are removed."""
    folder = tmp_path_factory.mktemp("temporary")
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before
    assert list(folder.iterdir()) == []


@asynccontextmanager
async def running(
    folder: Path, settings: HistoryReadSettings | None = None
) -> AsyncIterator[Stand]:
    store = open_store(folder, partitions=1)
    runtime = Runtime(store, CoordinatorSettings())
    await runtime.start()
    await runtime.loaded()
    reads = HistoryReads(folder, store, runtime, settings or HistoryReadSettings())
    await runtime.call(CreateTopic(INTERNAL, T, T_ID, 1))
    try:
        yield Stand(store, runtime, reads)
    finally:
        await reads.stop()
        await runtime.stop()
        store.close()


def at(offset: int) -> AsOfOffset:
    return AsOfOffset(LogOffset(offset))


def now() -> AsOfTimestamp:
    return AsOfTimestamp(time.time_ns() // 1_000_000)


@pytest.fixture
def never_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_process, "WORKER_PROGRAM", NEVER_ANSWERS)


async def test_a_process_is_used_again_and_sees_what_was_written_since(tmp_path: Path) -> None:
    async with running(tmp_path) as stand:
        await stand.commit(1)
        assert await stand.fetch(now()) == [(T, 1)]
        (first,) = children()
        await stand.commit(2)
        assert await stand.fetch(now()) == [(T, 2)]
        assert await stand.fetch(at(0)) == [(T, 1)]
        assert await stand.fetch(at(1)) == [(T, 2)]
        assert children() == {first}
    assert not children()


async def test_one_that_is_idle_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_reads, "IDLE_S", 0.0)
    async with running(tmp_path) as stand:
        await stand.commit(1)
        for _ in range(2):
            assert await stand.fetch(at(0)) == [(T, 1)]
            await until(lambda: not children())


async def test_one_that_ended_while_it_was_idle_is_replaced(tmp_path: Path) -> None:
    async with running(tmp_path) as stand:
        await stand.commit(1)
        await stand.fetch(at(0))
        (pid,) = children()
        os.kill(pid, signal.SIGKILL)
        assert await stand.fetch(at(0)) == [(T, 1)]
        await until(lambda: len(children()) == 1 and pid not in children())


async def test_who_goes_away_leaves_the_process_to_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "slow"
    slow.touch()
    monkeypatch.setenv("SLOW", str(slow))
    monkeypatch.setattr(worker_process, "WORKER_PROGRAM", SLOW_WHILE_A_FILE_IS_THERE)
    async with running(tmp_path / "store", HistoryReadSettings(readers_max=1)) as stand:
        await stand.commit(1)
        asking = asyncio.create_task(stand.fetch(at(0), holder="a"))
        await until(slow.with_name("slow.reads").exists)
        (pid,) = children()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        # It is still slow for whoever asks; it has stopped for the one who has gone.
        slow.unlink()
        assert await stand.fetch(at(0), holder="b") == [(T, 1)]
        assert children() == {pid}


@pytest.mark.usefixtures("never_answers")
async def test_a_process_that_does_not_stop_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_reads, "STOPS_WITHIN_S", 0.1)
    monkeypatch.setattr(history_reads, "IDLE_S", 0.1)
    async with running(tmp_path) as stand:
        await stand.commit(1)
        for is_started in (True, False):
            asking = asyncio.create_task(stand.fetch(at(0)))
            await (until(children) if is_started else asyncio.sleep(0))
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            await until(lambda: not children())


@pytest.mark.usefixtures("never_answers")
async def test_time_and_number_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_places, "WAITING_MAX", 4)
    settings = HistoryReadSettings(readers_max=2, timeout_ms=1_500)
    async with running(tmp_path, settings) as stand:
        await stand.commit(1)
        asking = [asyncio.create_task(stand.fetch(at(0), holder="ab"[n % 2])) for n in range(5)]
        await until(lambda: len(children()) == 2)
        most = 2
        while not all(task.done() for task in asking):
            most = max(most, len(children()))
            await asyncio.sleep(0.005)
        assert most == 2
        failures = [type(task.exception()) for task in asking]
        assert sorted(failures, key=str) == [HistoryBusy, *[HistoryTimedOut] * 4]
        await until(lambda: not children())


@pytest.mark.usefixtures("never_answers")
async def test_a_stop_ends_what_is_asked(tmp_path: Path) -> None:
    async with running(tmp_path) as stand:
        await stand.commit(1)
        asking = asyncio.create_task(stand.fetch(at(0)))
        await until(children)
        starting = asyncio.create_task(stand.fetch(at(0)))
        await asyncio.sleep(0)
        await stand.reads.stop()
        for task in (asking, starting):
            with pytest.raises(HistoryUnavailable):
                await task
        assert not children()


async def test_memory_is_bounded(tmp_path: Path) -> None:
    async with running(tmp_path, HistoryReadSettings(memory_bytes=1 << 20)) as stand:
        await stand.commit(1)
        with pytest.raises(HistoryBusy):
            await stand.fetch(at(0))


async def test_positions_that_cannot_be_told(tmp_path: Path) -> None:
    async with running(tmp_path) as stand:
        for offset in range(4):
            await stand.commit(offset)
        await until(lambda: stand.store.durable_offset(P) == 4)
        write_checkpoint(stand.store)
        limit = compute_trim_limit(stand.store, P)
        assert trim_once(stand.store, P, limit, 1)
        assert trim_once(stand.store, P, limit, 1)
        for position in (at(4), AsOfTimestamp(now().timestamp_ms + 3_600_000)):
            with pytest.raises(PositionInFuture, match="lies in the future"):
                await stand.fetch(position)
        for position in (at(0), AsOfTimestamp(1)):
            with pytest.raises(PositionNotKept) as caught:
                await stand.fetch(position)
        assert caught.value.about["log_partition"] == "0"
        earliest = int(caught.value.about["earliest_offset"])
        assert earliest == 1
        earliest_ms = int(caught.value.about["earliest_timestamp_ms"])
        assert f"offset {earliest} " in caught.value.message
        assert str(earliest_ms) in caught.value.message
        for position in (at(earliest), AsOfTimestamp(earliest_ms)):
            assert len(await stand.fetch(position)) == 1


async def test_a_log_that_cannot_be_read_is_an_error_and_never_no_group(tmp_path: Path) -> None:
    async with running(tmp_path) as stand:
        await stand.commit(1)
        current = tmp_path / "rocksdb" / "CURRENT"
        current.rename(current.with_name("gone"))
        try:
            with pytest.raises(UnknownServerError):
                await stand.fetch(at(0))
        finally:
            current.with_name("gone").rename(current)


async def test_a_topic_that_is_gone_is_named_as_it_was_committed(tmp_path: Path) -> None:
    async with running(tmp_path) as stand:
        await stand.commit(7)
        await stand.runtime.call(DeleteTopic(INTERNAL, T, T_ID))
        await until(lambda: stand.store.durable_offset(P) == 2)
        assert await stand.fetch(at(0)) == [(T, 7)]
        assert await stand.fetch(at(1)) == []


async def test_offsets_are_of_the_topic_that_they_were_committed_for(tmp_path: Path) -> None:
    """Bug: they were shown with the id of the current topic of that name."""
    new_id = TopicId(bytes(reversed(T_ID)))
    async with running(tmp_path) as stand:
        await stand.commit(7)
        await stand.runtime.call(DeleteTopic(INTERNAL, T, T_ID))
        await until(lambda: stand.store.durable_offset(P) == 2)
        await stand.runtime.call(CreateTopic(INTERNAL, T, new_id, 1))
        await stand.commit(3)
        shown = []
        for offset in (0, 2):
            for wanted in (None, (TopicToFetch(T, None, (0,)),)):
                command = OffsetFetch(INTERNAL, G, wanted)
                (answer,) = (await stand.reads.read(G, at(offset), (command,))).responses
                assert isinstance(answer, OffsetFetchResponse)
                shown += [(each.topic_id, each.partitions[0].offset) for each in answer.topics]
        assert shown == [(T_ID, 7), (T_ID, 7), (new_id, 3), (new_id, 3)]


async def test_errors_of_a_group_are_answers(tmp_path: Path) -> None:
    async with running(tmp_path) as stand:
        await stand.commit(7)
        nobody = GroupId("nobody")
        command = ConsumerGroupDescribe(INTERNAL, (nobody,))
        answer = await stand.reads.read(nobody, at(0), (command,))
        (response,) = answer.responses
        described: Any = response
        assert described.groups[0].error.name == "GROUP_ID_NOT_FOUND"


def test_every_error_has_its_status() -> None:
    assert issubclass(log_reads.PositionNotReached, HistoryError)
    codes = {kind.__name__: kind.code.name for kind in HistoryError.__subclasses__()}
    assert codes == {
        "PositionNotKept": "OFFSET_OUT_OF_RANGE",
        "PositionNotReached": "OFFSET_OUT_OF_RANGE",
        "PositionInFuture": "INVALID_REQUEST",
        "HistoryBusy": "THROTTLING_QUOTA_EXCEEDED",
        "HistoryTimedOut": "REQUEST_TIMED_OUT",
        "HistoryUnavailable": "COORDINATOR_NOT_AVAILABLE",
    }


def test_a_process_ends_with_its_parent(tmp_path: Path) -> None:
    folder = tmp_path / "its-own"
    folder.mkdir()
    (folder / "link").symlink_to("anything")
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-c", worker_process.WORKER_PROGRAM, folder],
            stdin=theirs.fileno(),
            stdout=theirs.fileno(),
        )
    try:
        ours.close()
        assert process.wait(WITHIN_S) == 0
        assert not folder.exists()
    finally:
        process.kill()
        process.wait()
