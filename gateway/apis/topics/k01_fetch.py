"""Fetch (1), versions 4 to 18: reads record batches, and waits up to MaxWaitMs for MinBytes.

Needs READ on the topic. There are no incremental fetch sessions (KIP-227): every response has
session id 0, so clients send full requests. This server has no followers, so a fetch with a
replica id gets NOT_LEADER_OR_FOLLOWER.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

from coordinator.runtime.loop.slices import Steps, run_at_once
from gateway.api import Api, RequestContext
from gateway.codec.kio_schema import response_schema
from gateway.long_answers import SLICE, handle_in_slices, reply_in_slices
from gateway.topic_requests import (
    TopicRef,
    check_leader_epoch,
    check_partition,
    compute_error_for_version,
    find_topic_by_id,
    find_topic_by_name,
)
from gateway.topics.topic_catalogue import DataWatch, PartitionKey, Read, ReadResult, TopicDataError
from gateway.wire_clock import Timer
from model.access.acls import CLUSTER_NAME, Operation, ResourceType
from model.errors import ErrorCode

KEY = 1
wire = response_schema(KEY)
by_name = response_schema(KEY, 12)
"""The last version with topic names."""

TOPIC_ID_VERSION: Final = 13
FULL_FETCH_EPOCHS: Final = (0, -1)
READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1
PARTITIONS_SLICE: Final = 200
"""Partitions read in one iteration, about 10 µs each."""
HELD_BYTES: Final = 500
"""Memory of one partition of a request until it is answered, rounded up: 370, and 60 as a key."""


class _Slot:
    """One partition of the request, with its result once known.

    ``is_found``: the partition exists and the client is authorized, so an error is a read error.
    """

    __slots__ = ("index", "is_found", "result")

    def __init__(self, index: int) -> None:
        self.index = index
        self.is_found = False
        self.result = ReadResult(ErrorCode.UNKNOWN_SERVER_ERROR)


class _Fetch:
    """One fetch, from the first read to its response."""

    def __init__(self, context: RequestContext, request: Any) -> None:
        self._context = context
        self._request = request
        self._topics = context.node.topics
        self._count = sum([len(wanted.partitions) for wanted in request.topics])
        self._slots: list[list[_Slot]] = []
        self._read_slots: list[_Slot] = []
        self._reads: list[Read] = []
        self._keys: dict[PartitionKey, None] = {}
        self._found_bytes = 0
        self._has_error = False
        self._watch: DataWatch | None = None
        self._timer: Timer | None = None
        self._rights_version = -1

    def start(self) -> Steps[None]:
        """Read the partitions, and wait if there is less than MinBytes."""
        self._hold(0)
        if self._context.closed:
            return
        yield from self._find_partitions()
        yield from self._read()
        self._wait_or_reply()

    def _find_partitions(self) -> Steps[None]:
        """Find out which of the partitions exist, and may be read by the client."""
        self._rights_version = self._context.node.authorizer.version
        self._slots, self._read_slots, self._reads, self._keys = [], [], [], {}
        is_follower = _compute_replica_id(self._request) >= 0
        left = PARTITIONS_SLICE
        for wanted in self._request.topics:
            ref = _find_topic(self._context, wanted, is_follower)
            row: list[_Slot] = []
            self._slots.append(row)
            for asked in wanted.partitions:
                slot = _Slot(asked.partition)
                row.append(slot)
                try:
                    key = check_partition(self._topics, ref, asked.partition)
                    slot.is_found = True
                    self._reads.append(self._check(key, asked, is_follower))
                    self._read_slots.append(slot)
                    self._keys[key] = None
                except TopicDataError as error:
                    slot.result = ReadResult(error.code)
                left -= 1
                if not left:
                    left = PARTITIONS_SLICE
                    yield

    def _hold(self, found_bytes: int) -> None:
        """Count the memory that the request holds until it is answered as request bytes."""
        self._context.client.hold(self._count * HELD_BYTES + found_bytes)

    def _read(self) -> Steps[None]:
        """Read the partitions in time slices; loading a partition's files is sliced too."""
        self._found_bytes, self._has_error = 0, False
        most = min(self._request.max_bytes, self._topics.fetch_max_bytes)
        slots, reads = iter(self._read_slots), iter(self._reads)
        while part := list(islice(reads, PARTITIONS_SLICE)):
            left = most - self._found_bytes
            done = yield from self._topics.read(part, left, at_least_one=left == most)
            for slot, result in zip(islice(slots, len(part)), done, strict=True):
                slot.result = result
                self._found_bytes += len(result.records)
                self._has_error |= result.error is not ErrorCode.NONE
            if len(part) == PARTITIONS_SLICE:
                yield

    def _check(self, key: PartitionKey, asked: Any, is_follower: bool) -> Read:
        if is_follower:
            raise TopicDataError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "This server has no followers.")
        if self._request.max_bytes < 0:
            raise TopicDataError(ErrorCode.UNKNOWN_SERVER_ERROR, "MaxBytes is negative.")
        epoch = getattr(asked, "current_leader_epoch", -1)
        if epoch >= 0:
            check_leader_epoch(self._topics, key, epoch)
        return Read(key, asked.fetch_offset, max(asked.partition_max_bytes, 0))

    def _wait_or_reply(self) -> None:
        wanted = min(self._request.min_bytes, self._request.max_bytes)
        missing = wanted - self._found_bytes
        waits = self._request.max_wait > 0 and missing > 0 and bool(self._reads)
        if not waits or self._has_error:
            self._reply()
            return
        clock = self._context.node.clock
        self._watch = self._topics.watch(self._keys, missing, self._finish)
        self._timer = clock.call_later(self._request.max_wait / 1_000, self._watch.end)
        self._context.on_abandoned(self._cancel)
        self._context.on_drain(self._finish)
        # This comes last because it may close this very connection.
        self._hold(self._found_bytes)

    def _finish(self) -> None:
        self._cancel()
        self._context.keep()
        handle_in_slices(self._context, self._read_again())

    def _read_again(self) -> Steps[None]:
        """Read what there is now. A right that was revoked during the wait holds here."""
        if self._rights_version != self._context.node.authorizer.version:
            yield from self._find_partitions()
        yield from self._read()
        self._reply()

    def _cancel(self) -> None:
        # Both refer to this fetch: keeping them would make reference cycles.
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.cancel()
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _reply(self) -> None:
        reply_in_slices(self._context, _make_response(self._context, self._request, self._slots))


def handle(context: RequestContext, request: Any) -> None:
    """Reply now, or once there are enough bytes to read."""
    if getattr(request, "session_epoch", -1) not in FULL_FETCH_EPOCHS:
        context.reply(_make_refusal(context, ErrorCode.FETCH_SESSION_ID_NOT_FOUND))
    elif request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
        reply_in_slices(context, _make_failed(context, request, ErrorCode.UNKNOWN_SERVER_ERROR))
    else:
        handle_in_slices(context, _Fetch(context, request).start())


def _compute_replica_id(request: Any) -> int:
    if hasattr(request, "replica_id"):
        return int(request.replica_id)
    return int(request.replica_state.replica_id)


def _find_topic(context: RequestContext, wanted: Any, is_follower: bool) -> TopicRef:
    # A replica id alone proves nothing: a client that claims to be a broker needs CLUSTER_ACTION.
    if is_follower and not context.authorized(
        Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME
    ):
        return TopicRef(None, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    image = context.node.topics.image
    if context.version >= TOPIC_ID_VERSION:
        return find_topic_by_id(context, image, wanted.topic_id, Operation.READ)
    return find_topic_by_name(context, image, wanted.topic, Operation.READ)


def _make_response(
    context: RequestContext, request: Any, slots: Sequence[Sequence[_Slot]]
) -> Steps[Any]:
    by_id = context.version >= TOPIC_ID_VERSION
    schema = wire if by_id else by_name
    responses = []
    left = SLICE
    for wanted, row in zip(request.topics, slots, strict=True):
        topic = {"topic_id": wanted.topic_id} if by_id else {"topic": wanted.topic}
        partitions = []
        for slot in row:
            partitions.append(_make_partition(schema, slot, request, by_id))
            left -= 1
            if not left:
                left = SLICE
                yield
        responses.append(schema.FetchableTopicResponse(**topic, partitions=partitions))
    return schema.FetchResponse(throttle_time=0, error_code=ErrorCode.NONE, responses=responses)


def _make_partition(schema: Any, slot: _Slot, request: Any, by_id: bool) -> Any:
    result = slot.result
    # As in Kafka: AbortedTransactions is empty for READ_COMMITTED and for an unknown partition; it
    # is null for READ_UNCOMMITTED and with read errors.
    is_asked = request.isolation_level == READ_COMMITTED and not result.error
    aborted: list[Any] | None = [] if is_asked or not slot.is_found else None
    return schema.PartitionData(
        partition_index=slot.index,
        error_code=compute_error_for_version(result.error, by_id),
        high_watermark=result.high_watermark,
        last_stable_offset=result.high_watermark,
        log_start_offset=result.log_start_offset,
        aborted_transactions=aborted,
        records=result.records,
    )


def _make_refusal(context: RequestContext, code: ErrorCode) -> Any:
    schema = wire if context.version >= TOPIC_ID_VERSION else by_name
    return schema.FetchResponse(throttle_time=0, error_code=code, responses=[])


def failed(context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
    """Fail the request and every partition (versions below 7 have no top-level error)."""
    return run_at_once(_make_failed(context, request, code))


def _make_failed(context: RequestContext, request: Any, code: ErrorCode) -> Steps[Any]:
    slots: list[list[_Slot]] = []
    left = SLICE
    for wanted in request.topics:
        row: list[_Slot] = []
        slots.append(row)
        for asked in wanted.partitions:
            slot = _Slot(asked.partition)
            slot.result = ReadResult(code)
            row.append(slot)
            left -= 1
            if not left:
                left = SLICE
                yield
    response = yield from _make_response(context, request, slots)
    response_type = wire if context.version >= TOPIC_ID_VERSION else by_name
    return response_type.FetchResponse(
        throttle_time=0, error_code=code, responses=response.responses
    )


API = Api(
    key=KEY, name="Fetch", versions=range(4, 19), handler=handle, failed=failed, is_large=True
)
