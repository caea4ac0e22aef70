"""``muster.v1.WhatIfService``: what a change would do to a group."""

from __future__ import annotations

from typing import Final, TypeAlias

import grpc.aio

from coordinator.core.groups.topic_records import PARTITIONS_MAX
from coordinator.core.whatif.question import ADD_MAX, CLASSIC, CONSUMER
from coordinator.service.admin.what_if_messages import encode_answer
from coordinator.service.calls.grpc_caller import compute_caller
from coordinator.service.calls.guard import Guard
from coordinator.service.calls.services import Services
from coordinator.service.wire.decode import check_id, check_topic_name, decode_group_id
from coordinator.service.wire.error_statuses import InvalidField
from coordinator.service.wire.limits import Limits
from model.access.acls import Operation
from model.commands.what_if import ComputeWhatIf
from model.configs.assignor_configs import Weight, parse_weights
from model.errors import InvalidPartitions
from model.ids import TopicName
from model.what_if import WhatIf, WhatIfAnswer
from muster.v1 import what_if_pb2, what_if_pb2_grpc

NAMED_MAX: Final = 1_000
"""The most members to remove, and the most topics that grow."""
WEIGHTS_MAX: Final = 10_000

_Context: TypeAlias = grpc.aio.ServicerContext[
    what_if_pb2.WhatIfRequest, what_if_pb2.WhatIfResponse
]


class WhatIfService(what_if_pb2_grpc.WhatIfServiceServicer):
    """Tells what would happen; see ``coordinator.service.wire.error_statuses`` for errors."""

    def __init__(self, services: Services) -> None:
        self._coordinator = services.coordinator
        self._access = services.access
        self._limits = services.limits

    async def WhatIf(  # noqa: N802
        self, request: what_if_pb2.WhatIfRequest, context: _Context
    ) -> what_if_pb2.WhatIfResponse:
        async with Guard(context, group_id=request.group_id):
            caller = compute_caller(context.peer(), "")
            question = decode_question(request, self._limits)
            self._access.check_group(caller, Operation.DESCRIBE, question.group_id)
            named = [name for name, _ in question.partitions]
            self._access.check_topics(caller, Operation.DESCRIBE, named)
            command = ComputeWhatIf(caller, question.group_id, question)
            answer = await self._coordinator.call(command)
            assert isinstance(answer, WhatIfAnswer)
            return await encode_answer(answer, caller, self._access)


def decode_question(request: what_if_pb2.WhatIfRequest, limits: Limits) -> WhatIf:
    """The question. Raises ``InvalidField`` and the like for what is out of bounds."""
    if not 0 <= request.add <= ADD_MAX:
        raise InvalidField("add", f"add must be from 0 to {ADD_MAX}")
    _check_count("remove", len(request.remove), NAMED_MAX)
    for name in request.remove:
        check_id(name, "remove", limits)
    return WhatIf(
        decode_group_id(request.group_id, limits),
        request.add,
        tuple(request.remove),
        _decode_growths(request, limits),
        request.assignor or None,
        _decode_weights(request.weights) if request.HasField("weights") else None,
        _decode_protocol(request.protocol),
        request.resume,
    )


def _decode_protocol(protocol: str) -> str | None:
    if protocol not in ("", CONSUMER, CLASSIC):
        raise InvalidField("protocol", f"protocol must be {CONSUMER} or {CLASSIC}")
    return protocol or None


def _check_count(field: str, count: int, most: int) -> None:
    if count > most:
        raise InvalidField(field, f"more than {most} of {field}")


def _decode_growths(
    request: what_if_pb2.WhatIfRequest, limits: Limits
) -> tuple[tuple[TopicName, int], ...]:
    _check_count("partitions", len(request.partitions), NAMED_MAX)
    found: dict[TopicName, int] = {}
    for growth in request.partitions:
        check_topic_name(growth.topic_name)
        name = TopicName(growth.topic_name)
        if name in found:
            raise InvalidField("partitions", f"topic {name} is named twice")
        if not 1 <= growth.num_partitions <= PARTITIONS_MAX:
            raise InvalidPartitions(f"A topic has 1 to {PARTITIONS_MAX} partitions.")
        found[name] = growth.num_partitions
    _check_count("partitions", sum(found.values()), limits.partitions)
    return tuple(found.items())


def _decode_weights(weights: what_if_pb2.PartitionWeights) -> tuple[Weight, ...]:
    _check_count("weights", len(weights.entries), WEIGHTS_MAX)
    try:
        return parse_weights(list(weights.entries))
    except ValueError as error:
        raise InvalidField("weights", str(error)) from error
