"""Commits and offset fetches of a classic member, retried as long as that can help."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import grpc
import grpc.aio

from muster.classic.classic_engine import ClassicEngine
from muster.connection.unary import ask
from muster.errors import (
    FENCED_INSTANCE_ID,
    ILLEGAL_GENERATION,
    PASSING,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
    MemberLost,
    decode_error,
)
from muster.offsets import (
    RETRY_DELAY_S,
    Claim,
    check_owned,
    decode_offsets,
    find_fetch_error,
    wait_until_available,
)
from muster.partitions import OffsetAndMetadata, TopicPartition, encode_names, encode_offsets
from muster.v1 import group_pb2, types_pb2

_GONE: Final = frozenset({UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, FENCED_INSTANCE_ID})
_AGAIN: Final = PASSING | _GONE | {REBALANCE_IN_PROGRESS}


async def commit_offsets(
    engine: ClassicEngine,
    find_grants: Callable[[], Mapping[TopicPartition, int]] | None,
    offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
) -> None:
    """Return when all are durable. Raises ``CommitFailed``, ``MemberLost``, ``MusterError``.

    ``find_grants`` returns the grants of owned partitions. Without it the member owns no
    partitions, and the commit counts only in the generation in which it was made.
    """
    check_holds(engine)
    if find_grants is not None:
        check_owned(find_grants(), offsets)
    claim = Claim(offsets, find_grants or (lambda: dict.fromkeys(offsets, engine.generation)))
    async with engine.commits.turn(offsets):
        while True:
            check_holds(engine)
            part = claim.check()
            if not part:
                break
            topics = encode_offsets(part, {})
            generation = engine.generation
            response = await _commit(engine, generation, topics)
            if response is None:
                continue
            refusal = claim.handle_result(part, topics, response, _AGAIN)
            if refusal is not None:
                await _handle_error(engine, refusal, generation)
            elif claim.is_finished:
                break
    claim.check_failures()


async def _commit(
    engine: ClassicEngine, generation: int, topics: Sequence[types_pb2.TopicOffsets]
) -> group_pb2.CommitOffsetsResponse | None:
    """Return ``None`` if the server could not be reached. Raises ``MusterError``."""
    request = group_pb2.CommitOffsetsRequest(
        group_id=engine.group_id,
        member_id=engine.member_id,
        member_epoch=generation,
        instance_id=engine.options.instance_id,
        topics=topics,
        client_id=engine.options.client_id,
        sequence=engine.commits.next_sequence(),
    )
    try:
        response: group_pb2.CommitOffsetsResponse = await ask(
            engine.client.stub.CommitOffsets, request
        )
        return response
    except grpc.aio.AioRpcError as error:
        await wait_until_available(error)
        return None


async def fetch_offsets(
    engine: ClassicEngine, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, OffsetAndMetadata | None]:
    """Fetch committed offsets, or ``None`` each. Raises ``MemberLost``, ``MusterError``."""
    request = group_pb2.FetchOffsetsRequest(
        group_id=engine.group_id,
        client_id=engine.options.client_id,
        partitions=types_pb2.PartitionSet(topics=encode_names(partitions)),
    )
    while True:
        engine.client.check_open()
        try:
            response = await ask(engine.client.stub.FetchOffsets, request)
        except grpc.aio.AioRpcError as error:
            await wait_until_available(error)
            continue
        refused = find_fetch_error(response, PASSING)
        if refused is None:
            return decode_offsets(response)
        if refused.error_code not in PASSING:
            raise decode_error(refused)
        await asyncio.sleep(RETRY_DELAY_S)


def check_holds(engine: ClassicEngine) -> None:
    """Raise the failure of the engine, or ``MemberLost``, unless its lease holds."""
    if not engine.holds:
        raise engine.failure or MemberLost("the member is in no generation of its group")


async def _handle_error(engine: ClassicEngine, error: types_pb2.Error, generation: int) -> None:
    """Return when a retry makes sense; otherwise raise."""
    if error.error_code in PASSING or error.error_code == REBALANCE_IN_PROGRESS:
        await asyncio.sleep(RETRY_DELAY_S)
    elif error.error_code not in _GONE:
        raise decode_error(error)
    elif error.error_code != ILLEGAL_GENERATION or generation == engine.generation:
        # In a later generation the member may still own the partition: the retry uses that one.
        raise decode_error(error, MemberLost)
