"""WriteTxnMarkers (27), versions 1 and 2: a transaction coordinator commits or aborts offsets.

Markers are accepted for ``__consumer_offsets`` only: the topics stored here take no transactions.
Needs CLUSTER_ACTION, or ALTER, on the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from coordinator.runtime.api import Answer
from coordinator.runtime.loop.slices import Steps, run_at_once
from gateway.api import Api, RequestContext
from gateway.authorized_operations import may_see
from gateway.codec.kio_schema import response_schema
from gateway.long_answers import SLICE, handle_in_slices, pace, reply_in_slices
from gateway.topic_requests import Gather
from model.access.acls import CLUSTER_NAME, Operation, ResourceType
from model.commands.transactions import WriteTxnMarkers
from model.errors import ErrorCode, GroupError
from model.ids import LogPartition, ProducerId, TopicName

KEY = 27
wire = response_schema(KEY)

OFFSETS_TOPIC: Final = "__consumer_offsets"
MARKERS_SLICE: Final = 1
"""Markers written in one iteration: each may have up to 10,000 pending offsets."""


_NOT_NOW: Final = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


class _Place(NamedTuple):
    """The producer and partition of one result."""

    producer_id: int
    topic: str
    partition: int


class _Result(NamedTuple):
    place: _Place
    error: ErrorCode


def handle(context: RequestContext, request: Any) -> None:
    """Write each marker to each of its partitions; each has a result."""
    if not _is_allowed(context):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        context.reply(failed(context, request, code, "Not authorized to the cluster."))
        return
    gather = Gather[_Result](context, lambda results: reply_in_slices(context, _make(results)))
    handle_in_slices(context, _submit(context, request, gather))


def _submit(context: RequestContext, request: Any, gather: Gather[_Result]) -> Steps[None]:
    wanted = ((marker, place) for marker in request.markers for place in _list_places(marker))
    for (marker, place), is_slice_done in pace(wanted, MARKERS_SLICE):
        code = _check(context, place, marker.producer_epoch)
        if code is ErrorCode.NONE:
            gather.submit(_make_command(context, marker, place), _ToResult(place))
        else:
            gather.add(_Result(place, code))
        if is_slice_done:
            yield
    gather.close()


def _is_allowed(context: RequestContext) -> bool:
    # The second is the one that a broker has; a refusal names it.
    return may_see(context, Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME) or (
        context.authorized(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME)
    )


def _list_places(marker: Any) -> Iterator[_Place]:
    """The distinct places of a marker, in order."""
    seen: set[_Place] = set()
    for topic in marker.topics:
        for partition in topic.partition_indexes:
            place = _Place(marker.producer_id, topic.name, partition)
            if place not in seen:
                seen.add(place)
                yield place


def _check(context: RequestContext, place: _Place, producer_epoch: int) -> ErrorCode:
    if place.topic != OFFSETS_TOPIC:
        topic = context.node.coordinator.image.by_name.get(TopicName(place.topic))
        if topic is None or not 0 <= place.partition < topic.partitions:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
    if not 0 <= place.partition < context.node.coordinator.log_partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if place.producer_id < 0 or producer_epoch < 0:
        # Kafka has no more specific error code.
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return ErrorCode.NONE


def _make_command(context: RequestContext, marker: Any, place: _Place) -> WriteTxnMarkers:
    return WriteTxnMarkers(
        context.caller,
        LogPartition(place.partition),
        ProducerId(marker.producer_id),
        marker.producer_epoch,
        marker.coordinator_epoch,
        marker.transaction_result,
        getattr(marker, "transaction_version", 0),
    )


class _ToResult:
    """Makes the result of one partition from the answer to its command."""

    def __init__(self, place: _Place) -> None:
        self._place = place

    def __call__(self, answer: Answer) -> _Result:
        code = answer.code if isinstance(answer, GroupError) else ErrorCode.NONE
        # A transaction coordinator retries after NOT_LEADER_OR_FOLLOWER.
        return _Result(self._place, ErrorCode.NOT_LEADER_OR_FOLLOWER if code in _NOT_NOW else code)


def _make(results: Sequence[_Result], producer_ids: Iterable[int] = ()) -> Steps[Any]:
    """Build the response; producers and topics are in order of first occurrence.

    ``producer_ids`` are in it also without a result.
    """
    found: dict[int, dict[str, list[Any]]] = {producer_id: {} for producer_id in producer_ids}
    for ((producer_id, topic, partition), error), is_slice_done in pace(results, SLICE):
        row = wire.WritableTxnMarkerPartitionResult(partition_index=partition, error_code=error)
        found.setdefault(producer_id, {}).setdefault(topic, []).append(row)
        if is_slice_done:
            yield
    markers = []
    for (producer_id, topics), is_slice_done in pace(found.items(), SLICE):
        made = [
            wire.WritableTxnMarkerTopicResult(name=name, partitions=rows)
            for name, rows in topics.items()
        ]
        markers.append(wire.WritableTxnMarkerResult(producer_id=producer_id, topics=made))
        if is_slice_done:
            yield
    return wire.WriteTxnMarkersResponse(markers=markers)


def failed(context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
    """Fail every partition; a marker without any is in the answer too, as in Kafka."""
    places = (place for marker in request.markers for place in _list_places(marker))
    producer_ids = (marker.producer_id for marker in request.markers)
    return run_at_once(_make([_Result(place, code) for place in places], producer_ids))


API = Api(
    key=KEY,
    name="WriteTxnMarkers",
    versions=range(1, 3),
    handler=handle,
    failed=failed,
    is_large=True,
)
