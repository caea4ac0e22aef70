"""`UpstreamService` over a real connection, with a cluster that moves groups when it is asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TypeAlias

import grpc
import grpc.aio
import pytest

from coordinator.service.admin.upstream.upstream_service import MOVED_AT_ONCE
from model.access.acls import Operation, ResourceType
from model.ids import GroupId
from model.places import Place
from muster.v1 import upstream_pb2, upstream_pb2_grpc
from tests.support.audits import KeptAudit
from tests.support.authorizers import Rights
from tests.support.service.fake_upstream import DESCRIPTION, FakeUpstream
from tests.support.service.stand import running_stand
from tests.support.waiting import until

Stub: TypeAlias = "upstream_pb2_grpc.UpstreamServiceAsyncStub"


@asynccontextmanager
async def serving(
    upstream: FakeUpstream | None, audit: KeptAudit | None = None, rights: Rights | None = None
) -> AsyncIterator[Stub]:
    async with running_stand(
        upstream=upstream, audit=audit or KeptAudit(), authorizer=rights
    ) as stand:
        yield upstream_pb2_grpc.UpstreamServiceStub(stand.channel())


async def take(stub: Stub, **fields: object) -> list[upstream_pb2.GroupReport]:
    return [each async for each in stub.TakeGroups(upstream_pb2.TakeGroupsRequest(**fields))]  # type: ignore[arg-type]


async def release(stub: Stub, **fields: object) -> list[upstream_pb2.GroupReport]:
    return [each async for each in stub.ReleaseGroups(upstream_pb2.ReleaseGroupsRequest(**fields))]  # type: ignore[arg-type]


async def test_the_cluster_is_described_with_its_brokers_in_order() -> None:
    async with serving(FakeUpstream()) as stub:
        found = await stub.GetUpstream(upstream_pb2.GetUpstreamRequest())
    assert [broker.node_id for broker in found.brokers] == [1, 2]
    assert [broker.relay_address for broker in found.brokers] == ["muster:9201", "muster:9202"]
    assert (found.cluster_id, found.release, found.reachable) == ("abc", "3.9", True)
    assert dict(found.features) == {"metadata.version": 21}


async def test_without_a_cluster_each_call_says_so_in_one_line() -> None:
    async with serving(None) as stub:
        calls = (
            stub.GetUpstream(upstream_pb2.GetUpstreamRequest()),
            stub.ListUpstreamGroups(upstream_pb2.ListUpstreamGroupsRequest()),
            take(stub, group_ids=["g"]),
            release(stub, all=True),
        )
        for call in calls:
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await call
            assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
            details = refused.value.details() or ""
            assert "upstream.bootstrap.servers" in details
            assert "\n" not in details


async def test_groups_are_listed_page_by_page_and_by_place() -> None:
    upstream = FakeUpstream()
    for name in "abcde":
        upstream.add(name, Place.MUSTER if name in "bd" else Place.UPSTREAM)
    async with serving(upstream) as stub:
        found: list[str] = []
        token = ""
        while True:
            request = upstream_pb2.ListUpstreamGroupsRequest(page_size=2, page_token=token)
            response = await stub.ListUpstreamGroups(request)
            found += [group.group_id for group in response.groups]
            token = response.next_page_token
            if not token:
                break
        here = await stub.ListUpstreamGroups(
            upstream_pb2.ListUpstreamGroupsRequest(places=[upstream_pb2.GROUP_PLACE_MUSTER])
        )
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await stub.ListUpstreamGroups(upstream_pb2.ListUpstreamGroupsRequest(places=[77]))  # type: ignore[list-item]
    assert found == list("abcde")
    assert [(group.group_id, group.members_here) for group in here.groups] == [("b", 1), ("d", 1)]
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_taken_group_is_reported_and_noted_in_the_audit_log() -> None:
    upstream, audit = FakeUpstream(), KeptAudit()
    upstream.add("g")
    async with serving(upstream, audit) as stub:
        (report,) = await take(stub, group_ids=["g"])
        assert report.group.place == upstream_pb2.GROUP_PLACE_MUSTER
        assert not report.HasField("error")
        (change,) = audit.changes
        assert (change.kind, change.operation, change.resource_name) == (
            "TakeGroup", Operation.ALTER_CONFIGS, "g",
        )  # fmt: skip
        assert (change.before, change.after) == ({"place": "upstream"}, {"place": "muster"})
        # Once more it is as it is, and nothing is noted.
        (again,) = await take(stub, group_ids=["g"])
        assert again.group.place == upstream_pb2.GROUP_PLACE_MUSTER
        assert len(audit.changes) == 1
        (back,) = await release(stub, all=True)
    assert back.group.place == upstream_pb2.GROUP_PLACE_UPSTREAM
    assert audit.changes[1].kind == "ReleaseGroup"


async def test_who_is_in_the_way_is_reported_and_the_other_groups_are_taken() -> None:
    upstream, audit = FakeUpstream(in_the_way={GroupId("b")}), KeptAudit()
    for name in ("a", "b", "other"):
        upstream.add(name)
    async with serving(upstream, audit) as stub:
        reports = {each.group.group_id: each for each in await take(stub, pattern="[ab]")}
    assert reports.keys() == {"a", "b"}
    assert reports["b"].error.reason == "NON_EMPTY_GROUP"
    (stranger,) = reports["b"].group.strangers
    assert (stranger.client_id, stranger.host) == ("old", "/10.0.0.7")
    assert reports["b"].groups == 2
    assert [change.resource_name for change in audit.changes] == ["a"]


async def test_a_dry_run_moves_nothing() -> None:
    upstream, audit = FakeUpstream(), KeptAudit()
    upstream.add("g")
    async with serving(upstream, audit) as stub:
        (report,) = await take(stub, group_ids=["g"], dry_run=True)
    assert report.group.place == upstream_pb2.GROUP_PLACE_UPSTREAM
    assert (upstream.moved, audit.changes) == ([("take", "g", True)], [])


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"group_ids": ["g"], "pattern": "g"},
        {"pattern": "("},
        {"pattern": "a" * 2_000},
        {"group_ids": [str(number) for number in range(1_001)]},
        {"group_ids": [""]},
    ],
    ids=["nothing", "both", "no regex", "long", "many", "empty id"],
)
async def test_a_bad_request_moves_nothing(fields: dict[str, object]) -> None:
    upstream = FakeUpstream()
    upstream.add("g")
    async with serving(upstream) as stub:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await take(stub, **fields)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert upstream.moved == []


async def test_a_pattern_is_refused_where_not_all_groups_are_known() -> None:
    upstream = FakeUpstream(replace(DESCRIPTION, is_reachable=False))
    upstream.add("g", Place.MUSTER)
    async with serving(upstream) as stub:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await take(stub, pattern=".*")
        listed = await stub.ListUpstreamGroups(upstream_pb2.ListUpstreamGroupsRequest())
    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
    assert [group.group_id for group in listed.groups] == ["g"]


async def test_one_group_without_the_right_to_it_keeps_all_where_they_are() -> None:
    upstream = FakeUpstream()
    upstream.add("mine")
    upstream.add("yours")
    rights = Rights(is_denied=lambda asked: asked.resource_name == "yours")
    async with serving(upstream, rights=rights) as stub:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await take(stub, group_ids=["mine", "yours"])
    assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
    assert upstream.moved == []


@pytest.mark.parametrize("verb", ["take", "release"])
async def test_all_groups_need_a_right_to_the_cluster(verb: str) -> None:
    upstream = FakeUpstream()
    upstream.add("g")
    rights = Rights(is_denied=lambda asked: asked.resource_type is ResourceType.CLUSTER)
    async with serving(upstream, rights=rights) as stub:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await (take(stub, pattern=".*") if verb == "take" else release(stub, all=True))
    assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
    assert upstream.moved == []


async def test_what_has_begun_ends_when_the_client_goes_and_the_rest_does_not_begin() -> None:
    upstream, audit = FakeUpstream(held=asyncio.Event()), KeptAudit()
    names = [f"g{number:02}" for number in range(MOVED_AT_ONCE + 4)]
    for name in names:
        upstream.add(name)
    began: list[GroupId] = []

    async def note(group_id: GroupId, *, dry_run: bool) -> object:
        began.append(group_id)
        return await FakeUpstream.take(upstream, group_id, dry_run=dry_run)

    upstream.take = note  # type: ignore[method-assign, assignment]
    async with running_stand(upstream=upstream, audit=audit) as stand:
        stub = upstream_pb2_grpc.UpstreamServiceStub(stand.channel())
        call = stub.TakeGroups(upstream_pb2.TakeGroupsRequest(group_ids=names))
        await until(lambda: len(began) == MOVED_AT_ONCE, "as many began as may")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call.read()
        # The server hears of it later than the client says it.
        await stand.server.wait_for_calls()
        assert upstream.held is not None
        upstream.held.set()
        await until(lambda: len(audit.changes) == MOVED_AT_ONCE, "all that began are noted")
    assert sorted(began) == names[:MOVED_AT_ONCE]
