"""Commits and offset fetches of a member, retried as long as that can help."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Container, Iterable, Mapping
from itertools import islice
from typing import Final

import grpc
import grpc.aio

from muster.connection.unary import ask, find_pushback_s
from muster.engine import Engine
from muster.errors import (
    FENCING,
    PASSING,
    STALE_MEMBER_EPOCH,
    THROTTLING_QUOTA_EXCEEDED,
    CommitFailed,
    MemberLost,
    MusterError,
    decode_error,
    find_delay_s,
)
from muster.partitions import OffsetAndMetadata, TopicPartition, encode_names, encode_offsets
from muster.v1 import group_pb2, types_pb2

RETRY_DELAY_S: Final = 0.1
_NOT_TAKEN: Final = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
"""An overloaded server ends some calls with CANCELLED."""
_AGAIN: Final = PASSING | FENCING | {STALE_MEMBER_EPOCH}
COMMIT_PARTITIONS_MAX: Final = 10_000
"""The server refuses larger commits."""
COMMIT_BYTES_MAX: Final = 1024 * 1024
"""The limit for the topics and metadata of one commit. A message of more than 4 MiB would end the
stream of all members, each time that the commit is retried."""
_ENTRY_BYTES: Final = 64
"""The overhead of a partition or a topic, without its metadata or name."""


async def commit_offsets(
    engine: Engine, offsets: Mapping[TopicPartition, int | OffsetAndMetadata]
) -> None:
    """Return when all are durable. Raises ``CommitFailed``, ``MemberLost``, ``MusterError``."""
    membership = engine.membership
    incarnation = membership.incarnation
    check_holds(engine)
    check_owned(membership.owned, offsets)
    claim = Claim(offsets, lambda: membership.grants)
    async with engine.commits.turn(offsets):
        while True:
            epoch = await _wait_for_epoch(engine, incarnation)
            part = claim.check()
            if not part:
                break
            topics = encode_offsets(part, membership.owned)
            result = await engine.client.commit(engine, epoch, topics)
            if result is None:
                # The stream broke before the answer. Committing twice does no harm.
                continue
            refusal = claim.handle_result(part, topics, result, _AGAIN)
            if refusal is not None:
                await _handle_error(engine, refusal, epoch)
            elif claim.is_finished:
                break
    claim.check_failures()


async def fetch_offsets(
    engine: Engine, partitions: Iterable[TopicPartition], client_id: str
) -> dict[TopicPartition, OffsetAndMetadata | None]:
    """Fetch committed offsets, or ``None`` each. Raises ``MemberLost``, ``MusterError``."""
    incarnation = engine.membership.incarnation
    wanted = types_pb2.PartitionSet(topics=encode_names(partitions))
    while True:
        epoch = await _wait_for_epoch(engine, incarnation)
        request = group_pb2.FetchOffsetsRequest(
            group_id=engine.group_id,
            member_id=engine.member_id,
            member_epoch=epoch,
            client_id=client_id,
            partitions=wanted,
        )
        try:
            response = await ask(engine.client.stub.FetchOffsets, request)
        except grpc.aio.AioRpcError as error:
            await wait_until_available(error)
            continue
        refused = find_fetch_error(response, _AGAIN)
        if refused is None:
            return decode_offsets(response)
        await _handle_error(engine, refused, epoch)


class Claim:
    """The offsets that are still to be committed, checked for ownership before each attempt.

    The server accepts any partition at the member's epoch, so a retried commit must not outlive the
    grant under which it was made. ``failures`` has the partitions that failed.
    """

    def __init__(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        find_grants: Callable[[], Mapping[TopicPartition, int]],
    ) -> None:
        self._find_grants = find_grants
        grants = find_grants()
        self._offsets = {TopicPartition(*key): offset for key, offset in offsets.items()}
        self._grants = {key: grants.get(key) for key in self._offsets}
        self.failures: dict[TopicPartition, MusterError] = {}

    @property
    def is_finished(self) -> bool:
        """Whether nothing is left to commit."""
        return not self._offsets

    def check(self) -> dict[TopicPartition, int | OffsetAndMetadata]:
        """The next part to commit: what fits into one request; empty if nothing is left."""
        part: dict[TopicPartition, int | OffsetAndMetadata] = {}
        # All partitions of a chunk may have failed the check while others remain.
        while self._offsets and not part:
            part = self._check_some()
        return part

    def _check_some(self) -> dict[TopicPartition, int | OffsetAndMetadata]:
        grants = self._find_grants()
        part: dict[TopicPartition, int | OffsetAndMetadata] = {}
        topics: set[str] = set()
        left = COMMIT_BYTES_MAX
        for key, offset in tuple(islice(self._offsets.items(), COMMIT_PARTITIONS_MAX)):
            if grants.get(key) != self._grants[key]:
                self._fail(key, "The member no longer owns the partition.")
                continue
            size = _compute_size(key, offset, topics)
            if size > COMMIT_BYTES_MAX:
                self._fail(key, f"The metadata is larger than {COMMIT_BYTES_MAX} bytes.")
                continue
            left -= size
            if left < 0:
                break
            part[key] = offset
            topics.add(key.topic)
        return part

    def _fail(self, key: TopicPartition, message: str) -> None:
        del self._offsets[key]
        self.failures[key] = MusterError(message)

    def handle_result(
        self,
        part: Iterable[TopicPartition],
        topics: list[types_pb2.TopicOffsets],
        result: group_pb2.CommitResult | group_pb2.CommitOffsetsResponse,
        codes: Container[int],
    ) -> types_pb2.Error | None:
        """Note the result of committing this part.

        Returns the error of the whole commit, or one of these ``codes`` of a partition: then the
        part is still to be committed.
        """
        refusal = result.error if result.HasField("error") else find_passing(result, codes)
        if refusal is not None:
            return refusal
        self.failures.update(decode_failures(result, topics))
        for key in part:
            self._offsets.pop(key, None)
        return None

    def check_failures(self) -> None:
        """Raise ``CommitFailed`` if some partitions were not committed."""
        if self.failures:
            raise CommitFailed(self.failures)


def _compute_size(
    key: TopicPartition, offset: int | OffsetAndMetadata, topics: Container[str]
) -> int:
    """The bytes that the entry adds, at most, to a commit that has these ``topics``."""
    size = _ENTRY_BYTES
    if key.topic not in topics:
        size += _ENTRY_BYTES + len(key.topic.encode())
    if isinstance(offset, OffsetAndMetadata) and offset.metadata:
        size += len(offset.metadata.encode())
    return size


def check_holds(engine: Engine) -> None:
    """Raise the failure of the engine, or ``MemberLost``, unless its lease holds."""
    if not engine.holds:
        raise engine.failure or MemberLost("the member was fenced or has expired")


def check_owned(
    owned: Collection[TopicPartition], offsets: Mapping[TopicPartition, int | OffsetAndMetadata]
) -> None:
    """Raise for partitions that are not owned: the server would accept them."""
    foreign = [TopicPartition(*key) for key in offsets if TopicPartition(*key) not in owned]
    if foreign:
        error = MusterError("The member does not own the partition.")
        raise CommitFailed(dict.fromkeys(foreign, error))


async def wait_until_available(error: grpc.aio.AioRpcError) -> None:
    """Wait before a retry if the server could not be reached, or says when; otherwise raise."""
    pushback_s = find_pushback_s(error)
    if pushback_s is not None:
        await asyncio.sleep(max(pushback_s, RETRY_DELAY_S))
        return
    if error.code() not in _NOT_TAKEN:
        raise MusterError(error.details() or error.code().name) from error
    await asyncio.sleep(RETRY_DELAY_S)


async def _wait_for_epoch(engine: Engine, incarnation: int) -> int:
    """Return the member epoch once the member is on a stream. Raises ``MemberLost``."""
    while not engine.can_ask:
        check_holds(engine)
        await engine.wait_for_change()
    if engine.membership.incarnation != incarnation:
        raise MemberLost("the member was fenced or has expired, and has joined again since")
    return engine.membership.member_epoch


async def _handle_error(engine: Engine, error: types_pb2.Error, epoch: int) -> None:
    """Return when a retry makes sense; otherwise raise."""
    if error.error_code in FENCING:
        raise decode_error(error, MemberLost)
    if error.error_code in PASSING:
        await asyncio.sleep(RETRY_DELAY_S)
    elif error.error_code == THROTTLING_QUOTA_EXCEEDED:
        await asyncio.sleep(max(find_delay_s(error), RETRY_DELAY_S))
    elif error.error_code == STALE_MEMBER_EPOCH:
        # The assignment with the new epoch is on its way.
        while engine.holds and engine.membership.member_epoch == epoch:
            await engine.wait_for_change()
    else:
        raise decode_error(error)


def find_passing(
    result: group_pb2.CommitResult | group_pb2.CommitOffsetsResponse, codes: Container[int]
) -> types_pb2.Error | None:
    """The first error of a partition with one of these ``codes``, which a retry may avoid."""
    for topic in result.failures:
        for partition in topic.partitions:
            if partition.error.error_code in codes:
                return partition.error
    return None


def find_fetch_error(
    response: group_pb2.FetchOffsetsResponse, codes: Container[int]
) -> types_pb2.Error | None:
    """The error of the whole fetch, or the first of a partition with one of these ``codes``."""
    if response.HasField("error"):
        return response.error
    for topic in response.topics:
        for entry in topic.partitions:
            if entry.HasField("error") and entry.error.error_code in codes:
                return entry.error
    return None


def decode_failures(
    result: group_pb2.CommitResult | group_pb2.CommitOffsetsResponse,
    topics: list[types_pb2.TopicOffsets],
) -> dict[TopicPartition, MusterError]:
    """The errors of the partitions that were not committed."""
    names = {topic.topic_id: topic.topic_name for topic in topics}
    return {
        TopicPartition(
            topic.topic_name or names.get(topic.topic_id, ""), failure.partition
        ): decode_error(failure.error)
        for topic in result.failures
        for failure in topic.partitions
    }


def decode_offsets(
    response: group_pb2.FetchOffsetsResponse,
) -> dict[TopicPartition, OffsetAndMetadata | None]:
    """Offsets by partition, or ``None``. Raises the first error of a partition."""
    offsets: dict[TopicPartition, OffsetAndMetadata | None] = {}
    for topic in response.topics:
        for entry in topic.partitions:
            if entry.HasField("error"):
                raise decode_error(entry.error)
            leader_epoch = entry.leader_epoch if entry.HasField("leader_epoch") else None
            offsets[TopicPartition(topic.topic_name, entry.partition)] = (
                OffsetAndMetadata(entry.offset, entry.metadata, leader_epoch)
                if entry.HasField("offset") and entry.offset >= 0
                else None
            )
    return offsets
