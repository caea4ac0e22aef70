"""Commits that are tried again, late or overtaken: none undoes a newer one, or a new owner's."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from unittest import mock

import grpc
import grpc.aio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.service.calls.sequences import Sequences
from model.commands.offsets import COMMIT_PARTITIONS_MAX
from model.ids import GroupId, MemberId
from muster import CommitFailed, MemberLost, MusterError, OffsetAndMetadata, TopicPartition, offsets
from muster.classic import classic_offsets
from muster.classic.classic_engine import ClassicEngine
from muster.commit_order import CommitOrder
from muster.engine import Engine
from muster.errors import ILLEGAL_GENERATION, STALE_MEMBER_EPOCH
from muster.membership import Membership, Status
from muster.v1 import group_pb2, types_pb2

ONE, TWO = TopicPartition("t", 1), TopicPartition("t", 2)
LOADING = types_pb2.Error(error_code=14)


@pytest.fixture(autouse=True)
def no_delays() -> Iterator[None]:
    with (
        mock.patch.object(offsets, "RETRY_DELAY_S", 0),
        mock.patch.object(classic_offsets, "RETRY_DELAY_S", 0),
    ):
        yield


@dataclass
class Log:
    """What a server has committed, in order: number of the commit, partition, offset."""

    entries: list[tuple[TopicPartition, int]] = field(default_factory=list)
    largest: int = 0
    """Partitions of one request."""
    largest_bytes: int = 0

    def apply(self, topics: Sequence[types_pb2.TopicOffsets]) -> None:
        size = group_pb2.Commit(topics=topics).ByteSize()
        self.largest_bytes = max(self.largest_bytes, size)
        self.largest = max(self.largest, sum(len(topic.partitions) for topic in topics))
        for topic in topics:
            for each in topic.partitions:
                key = TopicPartition(topic.topic_name, each.partition)
                self.entries.append((key, each.offset))

    def durable(self, partition: TopicPartition) -> int | None:
        found = [offset for key, offset in self.entries if key == partition]
        return found[-1] if found else None


class StreamClient:
    """``Client.commit``; ``fates`` are of the requests, one after another, then all is well.

    Late requests of a stream are refused by the server, so what arrives does so in order.
    """

    def __init__(self, fates: Sequence[str]) -> None:
        self.log = Log()
        self._fates = list(fates)
        self.on_request: Callable[[], None] = lambda: None

    async def commit(
        self, member: object, epoch: int, topics: Sequence[types_pb2.TopicOffsets]
    ) -> group_pb2.CommitResult | None:
        fate = self._fates.pop(0) if self._fates else "well"
        if fate in ("well", "slow", "answer lost"):
            self.log.apply(topics)
        self.on_request()
        for _ in range({"slow": 7}.get(fate, 2)):
            await asyncio.sleep(0)
        if fate in ("request lost", "answer lost"):
            return None
        error = {"loading": LOADING, "stale": types_pb2.Error(error_code=STALE_MEMBER_EPOCH)}
        return group_pb2.CommitResult(error=error.get(fate))


class StreamEngine:
    """An ``Engine``, as commits see it."""

    def __init__(self, client: StreamClient) -> None:
        self.client = client
        self.membership = Membership(Status.MEMBER, member_epoch=3, incarnation=1)
        self.commits = CommitOrder()
        self.failure: MusterError | None = None
        self.holds = self.can_ask = True
        self.grant(ONE, TWO)

    def grant(self, *partitions: TopicPartition) -> None:
        self.membership.assignment = dict.fromkeys(partitions, b"")
        self.membership.begin_assign(frozenset(partitions))

    async def wait_for_change(self) -> None:
        """The next epoch is told as soon as somebody waits for it."""
        await asyncio.sleep(0)
        self.membership.member_epoch += 1

    async def commit(self, given: Mapping[TopicPartition, int | OffsetAndMetadata]) -> None:
        await offsets.commit_offsets(cast("Engine", self), given)


def broken() -> grpc.aio.AioRpcError:
    return make_error(grpc.StatusCode.UNAVAILABLE)


def make_error(code: grpc.StatusCode) -> grpc.aio.AioRpcError:
    empty = grpc.aio.Metadata()
    return grpc.aio.AioRpcError(code, empty, empty, "", "")


class UnaryServer:
    """``GroupService.CommitOffsets``; a request that a connection holds back arrives later.

    After so many others, or, for ``drain``, at the end.
    """

    def __init__(self, fates: Sequence[str]) -> None:
        self.log = Log()
        self.sequences = Sequences()
        self._fates = list(fates)
        self._held: list[tuple[int, group_pb2.CommitOffsetsRequest]] = []

    async def CommitOffsets(
        self, request: group_pb2.CommitOffsetsRequest
    ) -> group_pb2.CommitOffsetsResponse:
        fate = self._fates.pop(0) if self._fates else "well"
        if fate.startswith("held"):
            self._held.append((int(fate[5:]), request))
            await asyncio.sleep(0)
            raise broken()
        self._held = [(left - 1, each) for left, each in self._held]
        for left, each in tuple(self._held):
            if left <= 0:
                self._held.remove((left, each))
                self._handle(each)
        if fate == "loading":
            await asyncio.sleep(0)
            return group_pb2.CommitOffsetsResponse(error=LOADING)
        if fate == "loading for one":
            await asyncio.sleep(0)
            topic = types_pb2.TopicFailures(
                topic_name=ONE.topic,
                partitions=[types_pb2.PartitionFailure(partition=ONE.partition, error=LOADING)],
            )
            return group_pb2.CommitOffsetsResponse(failures=[topic])
        if fate == "rebalanced":
            await asyncio.sleep(0)
            error = types_pb2.Error(error_code=ILLEGAL_GENERATION)
            return group_pb2.CommitOffsetsResponse(error=error)
        is_in_time = self._handle(request)
        await asyncio.sleep(0)
        if fate == "answer lost":
            raise broken()
        return group_pb2.CommitOffsetsResponse(error=None if is_in_time else LOADING)

    async def FetchOffsets(
        self, request: group_pb2.FetchOffsetsRequest
    ) -> group_pb2.FetchOffsetsResponse:
        fate = self._fates.pop(0) if self._fates else "well"
        found = types_pb2.CommittedOffset(partition=ONE.partition, offset=7)
        if fate == "loading for one":
            found = types_pb2.CommittedOffset(partition=ONE.partition, error=LOADING)
        topic = types_pb2.CommittedTopic(topic_name=ONE.topic, partitions=[found])
        return group_pb2.FetchOffsetsResponse(topics=[topic])

    def drain(self) -> None:
        for _, each in self._held:
            self._handle(each)

    def _handle(self, request: group_pb2.CommitOffsetsRequest) -> bool:
        key = GroupId(request.group_id), MemberId(request.member_id)
        is_in_time = self.sequences.note(key, request.sequence) is not None
        if is_in_time:
            self.log.apply(request.topics)
        return is_in_time


class UnaryEngine:
    """A ``ClassicEngine``, as commits see it; its application owns ``grants``."""

    def __init__(self, server: UnaryServer) -> None:
        self.client = self
        self.stub = server
        self.group_id, self.member_id, self.generation = "g", "m", 3
        self.options = mock.Mock(instance_id="", client_id="")
        self.commits = CommitOrder()
        self.failure: MusterError | None = None
        self.holds = True
        self.grants = {ONE: 1, TWO: 1}

    def check_open(self) -> None:
        """As a client that nobody has closed."""

    async def commit(self, given: Mapping[TopicPartition, int | OffsetAndMetadata]) -> None:
        await classic_offsets.commit_offsets(
            cast("ClassicEngine", self), lambda: self.grants, given
        )


# ------------------------------------------------------------------------ what was not taken


@pytest.mark.parametrize("code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED])
async def test_a_commit_that_a_server_did_not_take_is_made_again(code: grpc.StatusCode) -> None:
    """One with more calls than it can take ends some of them with CANCELLED."""
    await offsets.wait_until_available(make_error(code))


@pytest.mark.parametrize("code", [grpc.StatusCode.INTERNAL, grpc.StatusCode.PERMISSION_DENIED])
async def test_a_commit_that_failed_is_not(code: grpc.StatusCode) -> None:
    with pytest.raises(MusterError):
        await offsets.wait_until_available(make_error(code))


# --------------------------------------------------------------------------- more than one takes


async def test_a_commit_of_very_many_is_made_in_parts_that_a_server_takes() -> None:
    given = {TopicPartition("t", number): number for number in range(25_000)}
    client = StreamClient(["well", "request lost", "well", "loading"])
    stream = StreamEngine(client)
    stream.grant(*given)
    await stream.commit(given)
    server = UnaryServer(["loading"])
    unary = UnaryEngine(server)
    unary.grants = dict.fromkeys(given, 1)
    await unary.commit(given)
    for log in (client.log, server.log):
        assert dict(log.entries) == given
        assert len(log.entries) == len(given)
        assert log.largest == offsets.COMMIT_PARTITIONS_MAX == COMMIT_PARTITIONS_MAX


def said_of_each(size: int) -> dict[TopicPartition, int | OffsetAndMetadata]:
    """As many topics as partitions, with long names."""
    return {
        TopicPartition(f"{number:0249}", 0): OffsetAndMetadata(number, "x" * size)
        for number in range(5_000)
    }


@pytest.mark.parametrize("size", [0, 1_000])
async def test_a_part_is_no_larger_than_a_message_may_be(size: int) -> None:
    """A server ends the stream of one that is, and would again when the commit is made again."""
    given = said_of_each(size)
    stream = StreamEngine(StreamClient([]))
    stream.grant(*given)
    await stream.commit(given)
    unary = UnaryEngine(UnaryServer([]))
    unary.grants = dict.fromkeys(given, 1)
    await unary.commit(given)
    for log in (stream.client.log, unary.stub.log):
        assert [key for key, _ in log.entries] == list(given)
        assert offsets.COMMIT_BYTES_MAX // 2 < log.largest_bytes <= offsets.COMMIT_BYTES_MAX


async def test_metadata_that_no_message_takes_fails_by_itself() -> None:
    stream = StreamEngine(StreamClient([]))
    with pytest.raises(CommitFailed) as failed:
        await stream.commit({ONE: OffsetAndMetadata(1, "x" * offsets.COMMIT_BYTES_MAX), TWO: 2})
    assert list(failed.value.failures) == [ONE]
    assert stream.client.log.entries == [(TWO, 2)]


async def test_what_is_lost_between_two_parts_is_not_committed() -> None:
    given = {TopicPartition("t", number): number for number in range(35_000)}
    lost = frozenset(list(given)[5_000:32_000])
    stream = StreamEngine(StreamClient([]))
    stream.grant(*given)
    stream.client.on_request = lambda: stream.membership.finish_revoke(lost)
    with pytest.raises(CommitFailed) as failed:
        await stream.commit(given)
    committed = [key for key, _ in stream.client.log.entries]
    assert committed == [*list(given)[:10_000], *list(given)[32_000:]]
    assert failed.value.failures.keys() == given.keys() - set(committed)


# -------------------------------------------------------------------------------- the law

CALLS = st.lists(
    st.tuples(st.sampled_from([(ONE,), (TWO,), (ONE, TWO)]), st.integers(0, 3), st.booleans()),
    min_size=2,
    max_size=8,
)


async def run_calls(
    commit: Callable[[dict[TopicPartition, int]], Awaitable[None]],
    log: Log,
    calls: Sequence[tuple[tuple[TopicPartition, ...], int, bool]],
    drain: Callable[[], None] = lambda: None,
) -> None:
    """Commits ``number`` of each partition, in this order, without waiting for one another.

    A few are cancelled. What was acknowledged must not be undone by an older one.
    """
    acknowledged: list[tuple[int, int]] = []

    async def call(number: int, partitions: tuple[TopicPartition, ...]) -> None:
        await commit(dict.fromkeys(partitions, number))
        acknowledged.append((number, len(log.entries)))

    tasks = []
    for number, (partitions, pause, is_cancelled) in enumerate(calls, start=1):
        task = asyncio.create_task(call(number, partitions))
        tasks.append(task)
        for _ in range(pause + 1):
            await asyncio.sleep(0)
        if is_cancelled and number % 3 == 0:
            task.cancel()
    async with asyncio.timeout(30):
        results = await asyncio.gather(*tasks, return_exceptions=True)
    drain()
    for (partitions, _, _), result in zip(calls, results, strict=True):
        assert result is None or isinstance(result, asyncio.CancelledError), (partitions, result)
    for number, seen in acknowledged:
        for partition in calls[number - 1][0]:
            after = [offset for key, offset in log.entries[seen:] if key == partition]
            assert all(offset > number for offset in after), (number, partition, log.entries)


@given(
    CALLS,
    st.lists(
        st.sampled_from(["well", "slow", "request lost", "answer lost", "loading", "stale"]),
        max_size=12,
    ),
)
def test_no_commit_of_a_stream_undoes_a_later_one(calls: Any, fates: list[str]) -> None:
    async def run() -> None:
        client = StreamClient(fates)
        await run_calls(StreamEngine(client).commit, client.log, calls)

    asyncio.run(run())


@given(
    CALLS,
    st.lists(
        st.sampled_from(["well", "answer lost", "loading", "held 1", "held 2", "held 9"]),
        max_size=12,
    ),
)
def test_no_unary_commit_undoes_a_later_one(calls: Any, fates: list[str]) -> None:
    async def run() -> None:
        server = UnaryServer(fates)
        await run_calls(UnaryEngine(server).commit, server.log, calls, server.drain)

    asyncio.run(run())


# ------------------------------------------------------------------------------- ownership


@pytest.mark.parametrize("is_got_again", [False, True])
@pytest.mark.parametrize("fate", ["request lost", "loading", "stale"])
async def test_what_was_given_up_is_not_tried_again(fate: str, is_got_again: bool) -> None:
    """Also where it was got again: another member may have had it, and committed, meanwhile."""
    client = StreamClient([fate])
    engine = StreamEngine(client)

    def rebalance() -> None:
        client.on_request = lambda: None
        engine.membership.finish_revoke(frozenset({TWO}))
        if is_got_again:
            engine.grant(ONE, TWO)
            engine.membership.grants[ONE] = 1

    client.on_request = rebalance
    with pytest.raises(CommitFailed) as caught:
        await engine.commit({ONE: 10, TWO: 10})
    assert set(caught.value.failures) == {TWO}
    assert client.log.entries == [(ONE, 10)]


@pytest.mark.parametrize("fate", ["held 1", "loading", "rebalanced"])
async def test_a_classic_member_does_not_commit_for_another_owner(fate: str) -> None:
    server = UnaryServer([fate])
    engine = UnaryEngine(server)
    committing = asyncio.create_task(engine.commit({ONE: 10, TWO: 10}))
    await asyncio.sleep(0)
    engine.generation += 1
    engine.grants = {ONE: 1, TWO: 2}
    server.sequences.note((GroupId("g"), MemberId("m")), 2)
    with pytest.raises(CommitFailed) as caught:
        await committing
    assert set(caught.value.failures) == {TWO}
    assert server.log.entries == [(ONE, 10)]


async def test_what_passes_for_one_partition_is_tried_again() -> None:
    """Bug: a classic member failed with it; a member of a consumer group asks again."""
    server = UnaryServer(["loading for one"] * 2)
    engine = UnaryEngine(server)
    await engine.commit({ONE: 10})
    assert server.log.entries == [(ONE, 10)]


async def test_what_passes_for_one_partition_is_fetched_again() -> None:
    engine = UnaryEngine(UnaryServer(["loading for one"] * 2))
    found = await classic_offsets.fetch_offsets(cast("ClassicEngine", engine), [ONE])
    assert found == {ONE: OffsetAndMetadata(7)}


async def test_a_worker_commits_in_the_generation_that_it_was_asked_in() -> None:
    server = UnaryServer(["loading"])
    engine = UnaryEngine(server)
    committing = asyncio.create_task(
        classic_offsets.commit_offsets(cast("ClassicEngine", engine), None, {ONE: 10})
    )
    await asyncio.sleep(0)
    engine.generation += 1
    with pytest.raises(CommitFailed):
        await committing
    assert server.log.entries == []


async def test_who_has_joined_again_does_not_go_on_with_older_commits() -> None:
    client = StreamClient(["loading"])
    engine = StreamEngine(client)

    def lose() -> None:
        engine.membership.lose()
        engine.membership.begin_join()
        engine.membership.status = Status.MEMBER
        engine.grant(ONE, TWO)

    client.on_request = lose
    with pytest.raises(MemberLost):
        await engine.commit({ONE: 10})
    assert client.log.entries == []


# ----------------------------------------------------------------------------------- order


async def test_other_partitions_do_not_wait() -> None:
    order, events = CommitOrder(), []
    gate = asyncio.Event()

    async def commit(name: str, *partitions: TopicPartition) -> None:
        async with order.turn(partitions):
            events.append(name)
            await gate.wait()

    tasks = [
        asyncio.create_task(commit(name, *partitions))
        for name, partitions in (("a", (ONE,)), ("b", (ONE, TWO)), ("c", (TWO,)))
    ]
    await asyncio.sleep(0)
    assert events == ["a"], "c is after b, which is after a"
    other = asyncio.create_task(commit("d", TopicPartition("t", 3)))
    await asyncio.sleep(0)
    assert events == ["a", "d"]
    gate.set()
    await asyncio.gather(*tasks, other)
    assert events == ["a", "d", "b", "c"]
    assert not order._last


async def test_a_commit_that_is_given_up_lets_nobody_pass_the_one_before() -> None:
    order, events = CommitOrder(), []
    gate = asyncio.Event()

    async def commit(name: str) -> None:
        async with order.turn((ONE,)):
            events.append(name)
            await gate.wait()

    first, second, third = (asyncio.create_task(commit(name)) for name in "abc")
    await asyncio.sleep(0)
    second.cancel()
    for _ in range(5):
        await asyncio.sleep(0)
    assert events == ["a"]
    gate.set()
    await asyncio.gather(first, third)
    assert events == ["a", "c"]
    assert second.cancelled()
    assert not order._last
