"""InitProducerId (22), versions 0 to 5: allocates a producer id for an idempotent producer.

Needs IDEMPOTENT_WRITE on the cluster, or WRITE on any topic. There are no transactions: a
transactional id gets UNSUPPORTED_VERSION, which is fatal to the Java client and librdkafka, whereas
coordinator errors would make them retry for ever. Version 6 is unstable, and Kafka brokers do not
serve it either.
"""

from __future__ import annotations

from typing import Any, Final

from coordinator.runtime.api import Answer
from gateway.api import Api, RequestContext
from gateway.authorized_operations import may_see, may_see_some
from gateway.codec.kio_schema import response_schema
from model.access.acls import CLUSTER_NAME, Operation, ResourceType
from model.commands.transactions import AllocateProducerId
from model.errors import ErrorCode, GroupError
from model.responses.transactions import ProducerIdResponse

KEY = 22
wire = response_schema(KEY)

NONE: Final = -1


def handle(context: RequestContext, request: Any) -> None:
    """Allocate a producer id at epoch 0, whatever id the producer had before."""
    code = _compute_refusal(context, request)
    if code != ErrorCode.NONE:
        context.reply(_make_response(code))
        return
    context.submit(
        AllocateProducerId(context.caller),
        lambda answer: context.reply(_make_answer(answer)),
    )


def _compute_refusal(context: RequestContext, request: Any) -> int:
    transactional_id = request.transactional_id
    if transactional_id is not None:
        if not context.authorized(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        return ErrorCode.UNSUPPORTED_VERSION
    if not _may_write_somewhere(context):
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    producer_id = getattr(request, "producer_id", NONE)
    producer_epoch = getattr(request, "producer_epoch", NONE)
    if (producer_id == NONE) != (producer_epoch == NONE):
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def _may_write_somewhere(context: RequestContext) -> bool:
    return (
        may_see(context, Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, CLUSTER_NAME)
        or may_see_some(context, Operation.WRITE, ResourceType.TOPIC)
        # Once more, so that the refusal is noted.
        or context.authorized(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, CLUSTER_NAME)
    )


def _make_answer(answer: Answer) -> Any:
    if isinstance(answer, GroupError):
        return _make_response(answer.code)
    assert isinstance(answer, ProducerIdResponse)
    return _make_response(ErrorCode.NONE, answer.producer_id, 0)


def _make_response(code: int, producer_id: int = NONE, epoch: int = NONE) -> Any:
    return wire.InitProducerIdResponse(
        throttle_time=0, error_code=code, producer_id=producer_id, producer_epoch=epoch
    )


def failed(context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
    """Fail the request."""
    return _make_response(code)


API = Api(key=KEY, name="InitProducerId", versions=range(6), handler=handle, failed=failed)
