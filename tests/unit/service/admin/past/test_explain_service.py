"""ExplainService against a real coordinator: bounds, pages, topics that are not named."""

from __future__ import annotations

import uuid

import grpc
import pytest

from coordinator.service.wire.paging import compute_page_token
from model.access.acls import Operation, ResourceType
from muster.v1 import admin_pb2, explain_pb2, explain_pb2_grpc
from tests.support.authorizers import Rights
from tests.support.service.stand import Stand, running_stand
from tests.unit.service.admin.test_admin_service import info, make_groups

Ask = explain_pb2.ExplainGroupRequest
FILTERS = ("g", 0, 0)


@pytest.mark.parametrize(
    "request_",
    [
        Ask(group_id="g", since_ms=-1),
        Ask(group_id="g", until_ms=-1),
        Ask(group_id="g", page_size=-1),
        Ask(group_id="g", page_token="x"),
        Ask(group_id="g", page_token=compute_page_token("1.2", ("h", 0, 0))),
        Ask(group_id="g", page_token=compute_page_token("", FILTERS)),
        Ask(group_id="g", page_token=compute_page_token("1", FILTERS)),
        Ask(group_id="g", page_token=compute_page_token("1.-2", FILTERS)),
        Ask(group_id="g", page_token=compute_page_token("\u0661.\u00b2", FILTERS)),
        Ask(group_id="g", page_token=compute_page_token("1." + "9" * 5_000, FILTERS)),
    ],
    ids=lambda request: str(request)[:60],
)
async def test_what_is_out_of_bounds_is_refused(stand: Stand, request_: Ask) -> None:
    await make_groups(stand, "g")
    stub = explain_pb2_grpc.ExplainServiceStub(stand.channel())
    code, _ = await info(stub.ExplainGroup(request_))
    assert code is grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize("place", ["9999999999999999999.9999999999", "0.0"])
async def test_a_token_that_was_made_up_is_no_bug(stand: Stand, place: str) -> None:
    await make_groups(stand, "g")
    stub = explain_pb2_grpc.ExplainServiceStub(stand.channel())
    token = compute_page_token(place, FILTERS)
    answer = await stub.ExplainGroup(Ask(group_id="g", page_token=token))
    assert len(answer.rebalances) == (place != "0.0")


async def test_the_first_rebalance_of_a_group(stand: Stand) -> None:
    await make_groups(stand, "g")
    stub = explain_pb2_grpc.ExplainServiceStub(stand.channel())
    (found,) = (await stub.ExplainGroup(Ask(group_id="g"))).rebalances
    assert found.cause == explain_pb2.REBALANCE_CAUSE_MEMBER_JOINED
    assert (found.epoch, found.causes, found.is_classic) == (2, 1, False)
    assert found.ending == explain_pb2.REBALANCE_ENDING_CONVERGED
    assert found.ended_ms >= found.began_ms > 0
    assert found.member_id
    code, detail = await info(stub.ExplainGroup(Ask(group_id="nobody")))
    assert (code, detail.reason) == (grpc.StatusCode.NOT_FOUND, "GROUP_ID_NOT_FOUND")


async def test_a_topic_that_the_caller_may_not_see_is_not_named() -> None:
    rights = Rights()
    async with running_stand(authorizer=rights) as stand:
        await make_groups(stand, "g")
        grow = admin_pb2.GrowTopicRequest(
            topic_name="orders", num_partitions=9, request_id=str(uuid.uuid4())
        )
        await stand.admin_stub().GrowTopic(grow)
        stub = explain_pb2_grpc.ExplainServiceStub(stand.channel())
        for name in ("orders", ""):
            found = (await stub.ExplainGroup(Ask(group_id="g"))).rebalances[0]
            assert found.cause == explain_pb2.REBALANCE_CAUSE_PARTITIONS_ADDED
            assert found.topic_name == name
            rights.denied.add((Operation.DESCRIBE, ResourceType.TOPIC, "orders"))
