"""Commits and fetches of a member, tried again as long as that can help."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Container, Iterable, Mapping
from itertools import islice
from typing import Final

import grpc
import grpc.aio

from muster.connection.unary import ask
from muster.engine import Engine
from muster.errors import (
    FENCING,
    PASSING,
    STALE_MEMBER_EPOCH,
    CommitFailed,
    MemberLost,
    MusterError,
    decode_error,
)
from muster.partitions import OffsetAndMetadata, TopicPartition, encode_names, encode_offsets
from muster.v1 import group_pb2, types_pb2

RETRY_DELAY_S: Final = 0.1
_NOT_TAKEN: Final = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
"""A server that has more calls than it can take ends some of them with CANCELLED."""
_AGAIN: Final = PASSING | FENCING | {STALE_MEMBER_EPOCH}
COMMIT_PARTITIONS_MAX: Final = 10_000
"""The server refuses a commit of more."""
COMMIT_BYTES_MAX: Final = 1024 * 1024
"""Of topics and metadata of one commit: a message of more than 4 MiB ends the stream that it is
sent on, that of all members, as often as it is sent."""
_ENTRY_BYTES: Final = 64
"""A partition's entry, and a topic's, beside the metadata and the name."""


async def commit_offsets(
    engine: Engine, offsets: Mapping[TopicPartition, int | OffsetAndMetadata]
) -> None:
    """Returns when all are durable. Raises ``CommitFailed``, ``MemberLost``, ``MusterError``."""
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
    """Committed offsets; ``None`` where there is none. Raises ``MemberLost``, ``MusterError``."""
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
    """What is to be committed, as far as it is the member's still; asked for at each try.

    The server takes any partition at the member's epoch, so a commit that is tried again must not
    outlive the grant that it was made under. ``failures`` are of those that did.
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
        """What is to be committed next: what is left, as far as one request may have it."""
        part: dict[TopicPartition, int | OffsetAndMetadata] = {}
        # None of the first may be left to be committed, and others still.
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
                self._fail(key, "the member does not own it any more")
                continue
            size = _compute_size(key, offset, topics)
            if size > COMMIT_BYTES_MAX:
                self._fail(key, f"its metadata is larger than {COMMIT_BYTES_MAX} bytes")
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
    """Bytes of a commit, at most, that has entries of these ``topics`` already."""
    size = _ENTRY_BYTES
    if key.topic not in topics:
        size += _ENTRY_BYTES + len(key.topic.encode())
    if isinstance(offset, OffsetAndMetadata) and offset.metadata:
        size += len(offset.metadata.encode())
    return size


def check_holds(engine: Engine) -> None:
    """Raises ``MemberLost``, or why the member is out, unless it is one."""
    if not engine.holds:
        raise engine.failure or MemberLost("the member was fenced or has expired")


def check_owned(
    owned: Collection[TopicPartition], offsets: Mapping[TopicPartition, int | OffsetAndMetadata]
) -> None:
    """The server would take them: they would overwrite what the owner commits."""
    strange = [TopicPartition(*key) for key in offsets if TopicPartition(*key) not in owned]
    if strange:
        error = MusterError("the member does not own it")
        raise CommitFailed(dict.fromkeys(strange, error))


async def wait_until_available(error: grpc.aio.AioRpcError) -> None:
    """Returns when it makes sense to ask a server again that could not be reached; else raises."""
    if error.code() not in _NOT_TAKEN:
        raise MusterError(error.details() or error.code().name) from error
    await asyncio.sleep(RETRY_DELAY_S)


async def _wait_for_epoch(engine: Engine, incarnation: int) -> int:
    """The member epoch, once the member is on a stream. Raises ``MemberLost``."""
    while not engine.can_ask:
        check_holds(engine)
        await engine.wait_for_change()
    if engine.membership.incarnation != incarnation:
        raise MemberLost("the member was fenced or has expired, and has joined again since")
    return engine.membership.member_epoch


async def _handle_error(engine: Engine, error: types_pb2.Error, epoch: int) -> None:
    """Returns when it makes sense to try again; else raises."""
    if error.error_code in FENCING:
        raise decode_error(error, MemberLost)
    if error.error_code in PASSING:
        await asyncio.sleep(RETRY_DELAY_S)
    elif error.error_code == STALE_MEMBER_EPOCH:
        # The new epoch is on its way to us.
        while engine.holds and engine.membership.member_epoch == epoch:
            await engine.wait_for_change()
    else:
        raise decode_error(error)


def find_passing(
    result: group_pb2.CommitResult | group_pb2.CommitOffsetsResponse, codes: Container[int]
) -> types_pb2.Error | None:
    """An error of these ``codes``, which a repeated commit may not meet, of any partition."""
    for topic in result.failures:
        for partition in topic.partitions:
            if partition.error.error_code in codes:
                return partition.error
    return None


def find_fetch_error(
    response: group_pb2.FetchOffsetsResponse, codes: Container[int]
) -> types_pb2.Error | None:
    """The error of all of it, or one of these ``codes`` of any partition."""
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
    """The partitions that were not committed."""
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
    """Offsets by partition; ``None`` where there is none. Raises the error of a partition."""
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
