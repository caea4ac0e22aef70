"""WhatIfService against a real coordinator: bounds, rights on topics, many questions at once."""

from __future__ import annotations

import asyncio

import grpc
import pytest

from coordinator.core.whatif.question import ADD_MAX
from coordinator.runtime.commands.what_ifs import RUNNING_MAX, WAITING_MAX
from coordinator.service.admin.what_if_service import NAMED_MAX
from model.access.acls import Operation, ResourceType
from muster.v1 import what_if_pb2, what_if_pb2_grpc
from tests.support.authorizers import Rights
from tests.support.service.stand import Stand, running_stand
from tests.unit.service.admin.test_admin_service import info, make_groups

Ask = what_if_pb2.WhatIfRequest


def grow(name: str, partitions: int) -> what_if_pb2.TopicGrowth:
    return what_if_pb2.TopicGrowth(topic_name=name, num_partitions=partitions)


@pytest.mark.parametrize(
    "request_",
    [
        Ask(),
        Ask(group_id="g", add=-1),
        Ask(group_id="g", add=ADD_MAX + 1),
        Ask(group_id="g", remove=["m"] * (NAMED_MAX + 1)),
        Ask(group_id="g", remove=["m" * 100_000]),
        Ask(group_id="g", partitions=[grow("orders", 0)]),
        Ask(group_id="g", partitions=[grow("orders", 2_000_000_000)]),
        Ask(group_id="g", partitions=[grow("", 3)]),
        Ask(group_id="g", partitions=[grow("orders", 3), grow("orders", 4)]),
        Ask(group_id="g", partitions=[grow(f"t{number}", 100_000) for number in range(9)]),
        Ask(group_id="g", weights=what_if_pb2.PartitionWeights(entries=["orders=x"])),
        Ask(group_id="g", assignor="best"),
    ],
    ids=str,
)
async def test_what_is_out_of_bounds_is_refused(stand: Stand, request_: Ask) -> None:
    await make_groups(stand, "g")
    stub = what_if_pb2_grpc.WhatIfServiceStub(stand.channel())
    code, _ = await info(stub.WhatIf(request_))
    assert code is grpc.StatusCode.INVALID_ARGUMENT


async def test_topics_that_the_caller_may_not_see_are_not_told() -> None:
    rights = Rights(
        is_denied=lambda asked: (
            asked.operation is Operation.DESCRIBE and asked.resource_type is ResourceType.TOPIC
        )
    )
    async with running_stand(authorizer=rights) as stand:
        stub = what_if_pb2_grpc.WhatIfServiceStub(stand.channel())
        request = Ask(group_id="g", partitions=[grow("secret", 3)])
        code, detail = await info(stub.WhatIf(request))
        assert (code, detail.reason) == (
            grpc.StatusCode.PERMISSION_DENIED,
            "TOPIC_AUTHORIZATION_FAILED",
        )


async def test_very_many_questions_are_answered_or_told_to_come_again(stand: Stand) -> None:
    await make_groups(stand, "g")
    stub = what_if_pb2_grpc.WhatIfServiceStub(stand.channel())
    count = RUNNING_MAX + WAITING_MAX + 20

    async def ask() -> grpc.StatusCode:
        try:
            await stub.WhatIf(Ask(group_id="g", add=5))
        except grpc.aio.AioRpcError as error:
            return error.code()
        return grpc.StatusCode.OK

    codes = await asyncio.gather(*(ask() for _ in range(count)))
    assert set(codes) <= {grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE}
    assert await ask() is grpc.StatusCode.OK, "nothing is stuck"
