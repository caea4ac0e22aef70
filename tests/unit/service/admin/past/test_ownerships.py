"""Ownerships of the past: equal to what each moment's description says, bounded, by rights."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Iterable
from pathlib import Path

import grpc
import grpc.aio
import pytest

from coordinator.service.admin.past import history_service
from model.access.acls import Operation, ResourceType
from muster.v1 import admin_pb2, history_pb2, history_pb2_grpc, types_pb2
from storage.log.trim import compute_trim_limit
from tests.golden.past_server import PastServer, import_golden, running_past_server
from tests.support.authorizers import Rights
from tests.support.service.stand import Stand
from tests.support.trimming import trim_once

GROUP = "o08-consumer-uniform"
CLASSIC_GROUP = "o01-classic-range"
PARTITION = 47

Owned = dict[tuple[str, int], str]


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("golden") / "store"
    import_golden(folder)
    return folder


async def ask(
    server: PastServer, group_id: str = GROUP, **fields: object
) -> history_pb2.ListOwnershipsResponse:
    request = history_pb2.ListOwnershipsRequest(group_id=group_id, **fields)  # type: ignore[arg-type]
    async with grpc.aio.insecure_channel(server.target) as channel:
        return await history_pb2_grpc.HistoryServiceStub(channel).ListOwnerships(request)


def list_lanes(found: history_pb2.ListOwnershipsResponse) -> list[tuple[str, int]]:
    return [
        (topic.topic_name, lane.partition) for topic in found.topics for lane in topic.partitions
    ]


def find_owned(
    found: history_pb2.ListOwnershipsResponse, moment: int
) -> tuple[Owned, Owned, set[tuple[str, int]]]:
    """Owners, targets, and what is being revoked after a moment; -1 for the beginning."""
    owners: Owned = {}
    targets: Owned = {}
    revoking = set()
    for topic in found.topics:
        for lane in topic.partitions:
            spans = [
                each for each in lane.spans if not each.HasField("moment") or each.moment <= moment
            ]
            place = topic.topic_name, lane.partition
            for span in spans[-1:]:
                if span.HasField("owner"):
                    owners[place] = found.members[span.owner].member_id
                if span.HasField("target"):
                    targets[place] = found.members[span.target].member_id
                if span.is_revoking:
                    revoking.add(place)
    return owners, targets, revoking


def list_places(topics: Iterable[types_pb2.TopicPartitions]) -> set[tuple[str, int]]:
    return {(topic.topic_name, partition) for topic in topics for partition in topic.partitions}


def find_described(group: admin_pb2.Group) -> tuple[Owned, Owned, set[tuple[str, int]]]:
    owners: Owned = {}
    targets: Owned = {}
    revoking = set()
    is_classic = group.group_type == admin_pb2.GROUP_TYPE_CLASSIC
    for member in group.members:
        pending = list_places(member.pending_revocation)
        owned = list_places(member.assignment)
        owners |= dict.fromkeys(owned | pending, member.member_id)
        targeted = owned if is_classic else list_places(member.target_assignment)
        targets |= dict.fromkeys(targeted, member.member_id)
        revoking |= pending
    return owners, targets, revoking


async def test_each_moment_is_what_its_description_says(golden: Path) -> None:
    compared = 0
    async with running_past_server(golden) as server:
        for group_id in (GROUP, CLASSIC_GROUP, "o15-updown-range", "o12-consumer-static"):
            found = await ask(server, group_id)
            assert found.moments
            offsets = [moment.log_offset for moment in found.moments]
            assert offsets == sorted(set(offsets))
            for number, moment in enumerate(found.moments):
                past = await server.describe(group_id, types_pb2.AsOf(offset=moment.log_offset))
                assert past is not None
                assert find_owned(found, number) == find_described(past.group), (group_id, moment)
                assert moment.group_epoch == past.group.group_epoch
                assert moment.members == len(past.group.members)
                compared += 1
    assert compared > 30


async def test_a_part_of_the_time_begins_with_the_state_there(golden: Path) -> None:
    async with running_past_server(golden) as server:
        whole = await ask(server)
        middle = whole.moments[len(whole.moments) // 2]
        until = types_pb2.AsOf(offset=whole.moments[-2].log_offset)
        part = await ask(server, since_ms=middle.timestamp_ms, until=until)
        later = [each for each in whole.moments if each.timestamp_ms > middle.timestamp_ms]
        assert later[0] != middle
        assert list(part.moments) == later[:-1]
        assert part.begin.offset >= middle.log_offset
        assert part.begin.timestamp_ms == middle.timestamp_ms
        assert part.end.offset >= later[-2].log_offset
        past = await server.describe(GROUP, types_pb2.AsOf(timestamp_ms=middle.timestamp_ms))
        assert past is not None
        assert find_owned(part, -1) == find_described(past.group)


async def test_pages_have_all_lanes_and_the_same_moments(golden: Path) -> None:
    async with running_past_server(golden) as server:
        whole = await ask(server)
        lanes = list_lanes(whole)
        assert lanes == sorted(lanes)
        assert len(lanes) > 4
        found, token = [], ""
        while True:
            page = await ask(server, page_size=3, page_token=token)
            shown = list_lanes(page)
            assert len(shown) <= 3
            assert page.moments == whole.moments
            found += shown
            token = page.next_page_token
            if not token:
                break
        assert found == lanes


async def test_if_much_changed_the_last_changes_are_told(
    golden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_past_server(golden) as server:
        whole = await ask(server)
        monkeypatch.setattr(history_service, "SPANS_MAX", 3)
        part = await ask(server)
        kept = len(part.moments)
        assert 1 <= kept <= 3
        assert list(part.moments) == list(whole.moments)[-kept:]
        before = whole.moments[-kept - 1]
        assert part.begin.offset == before.log_offset
        assert part.begin.timestamp_ms == before.timestamp_ms
        assert find_owned(part, -1) == find_owned(whole, len(whole.moments) - kept - 1)
        assert find_owned(part, kept - 1) == find_owned(whole, len(whole.moments) - 1)


async def test_where_the_history_was_trimmed_it_begins_later(golden: Path, tmp_path: Path) -> None:
    golden = Path(shutil.copytree(golden, tmp_path / "store"))
    async with running_past_server(golden) as server:
        whole = await ask(server)
    async with running_past_server(golden) as server:
        limit = compute_trim_limit(server.store, PARTITION)  # type: ignore[arg-type]
        assert trim_once(server.store, PARTITION, limit, 2_000)  # type: ignore[arg-type]
        part = await ask(server)
        assert 0 < len(part.moments) < len(whole.moments)
        assert list(part.moments) == list(whole.moments)[-len(part.moments) :]
        gone = len(whole.moments) - len(part.moments)
        assert find_owned(part, -1) == find_owned(whole, gone - 1)


async def test_a_topic_without_describe_is_left_out(golden: Path) -> None:
    rights = Rights()
    async with running_past_server(golden, authorizer=rights) as server:
        whole = await ask(server)
        names = [topic.topic_name for topic in whole.topics]
        assert len(names) > 1
        rights.denied.add((Operation.DESCRIBE, ResourceType.TOPIC, names[0]))
        part = await ask(server)
        assert list_lanes(part) == [lane for lane in list_lanes(whole) if lane[0] != names[0]]
        for moment in range(-1, len(whole.moments)):
            seen = [
                {place: owner for place, owner in owned.items() if place[0] != names[0]}
                for owned in find_owned(whole, moment)[:2]
            ]
            assert list(find_owned(part, moment)[:2]) == seen
        rights.denied.add((Operation.DESCRIBE, ResourceType.GROUP, GROUP))
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await ask(server)
        assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED


async def test_members_are_those_that_seen_lanes_name(golden: Path) -> None:
    rights = Rights()
    group_id = "o12-consumer-static"
    async with running_past_server(golden, authorizer=rights) as server:
        whole = await ask(server, group_id)
        assert [topic.topic_name for topic in whole.topics] == ["t3", "t8"]
        # Four of its members never had a partition of t3.
        rights.denied = {(Operation.DESCRIBE, ResourceType.TOPIC, "t8")}
        part = await ask(server, group_id)
        owners = set()
        for moment in range(-1, len(whole.moments)):
            owned = find_owned(whole, moment)[0]
            owners |= {owned[place] for place in owned if place[0] == "t3"}
        assert [member.member_id for member in part.members] == sorted(owners)
        assert len(part.members) < len(whole.members)
        rights.denied.add((Operation.DESCRIBE, ResourceType.TOPIC, "t3"))
        assert not (await ask(server, group_id)).members


async def test_pages_say_nothing_of_a_topic_without_describe(golden: Path) -> None:
    rights = Rights()
    async with running_past_server(golden, authorizer=rights) as server:
        whole = await ask(server)
        for hidden in [topic.topic_name for topic in whole.topics]:
            rights.denied = {(Operation.DESCRIBE, ResourceType.TOPIC, hidden)}
            found, token = [], ""
            while True:
                page = await ask(server, page_size=1, page_token=token)
                found += list_lanes(page)
                token = page.next_page_token
                if not token:
                    break
                assert hidden.encode() not in base64.urlsafe_b64decode(token)
            assert found == [lane for lane in list_lanes(whole) if lane[0] != hidden]


async def test_what_cannot_be_told_is_refused(golden: Path) -> None:
    async with running_past_server(golden) as server:
        for fields, code in (
            ({"group_id": "nobody"}, grpc.StatusCode.NOT_FOUND),
            ({"since_ms": -1}, grpc.StatusCode.INVALID_ARGUMENT),
            ({"page_token": "x"}, grpc.StatusCode.INVALID_ARGUMENT),
            ({"until": types_pb2.AsOf(offset=1 << 60)}, grpc.StatusCode.INVALID_ARGUMENT),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await ask(server, **fields)
            assert caught.value.code() is code, fields


async def test_a_log_in_memory_has_no_ownerships(stand: Stand) -> None:
    stub = history_pb2_grpc.HistoryServiceStub(stand.channel())
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.ListOwnerships(history_pb2.ListOwnershipsRequest(group_id="g"))
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
