"""What a relay does with requests of groups."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from gateway.codec.kio_schema import request_type, response_type
from gateway.rewriting.coordinators import KEYS_MAX
from gateway.rewriting.versions import readable_versions
from model.errors import ErrorCode
from model.places import Place
from tests.support.upstream.response_frames import response_frame
from tests.support.waiting import until
from tests.support.wire.codec import decode
from tests.unit.upstream.relay.relay_rig import run_relays
from upstream.relay.frames.group_frames import ELEMENTS_MAX, GROUP_KEYS, NAMES_MAX

NOT_COORDINATOR = ErrorCode.NOT_COORDINATOR
SINGLE = sorted(GROUP_KEYS - {15, 42, 69})


def answer_with(fields: dict[int, dict[str, Any]]) -> Callable[[bytes], bytes | None]:
    """A broker that answers these APIs."""

    def answer(frame: bytes) -> bytes | None:
        key, version, number = head_of(frame)
        return response_frame(key, version, number, **fields[key]) if key in fields else None

    return answer


def head_of(frame: bytes) -> tuple[int, int, int]:
    return (
        int.from_bytes(frame[:2], "big"),
        int.from_bytes(frame[2:4], "big"),
        int.from_bytes(frame[4:8], "big"),
    )


def body_of(frame: bytes) -> Any:
    key, version, _ = head_of(frame)
    request = request_type(key, version)
    return decode(request, frame, 11 + bool(request.__header_schema__.__flexible__))


def request_of(key: int, version: int, group_id: str) -> dict[str, Any]:
    topic: dict[str, Any] = {"name": "orders"}
    if key in (8, 9) and version == 10:
        topic = {"topic_id": b"t" * 16}
    match key:
        case 15:
            return {"groups": (group_id,)}
        case 42:
            return {"groups_names": (group_id,)}
        case 69:
            return {"group_ids": (group_id,)}
        case 9 if version >= 8:
            return {"groups": [{"group_id": group_id}]}
        case 9:
            return {"group_id": group_id, "topics": [topic | {"partition_indexes": (3, 4)}]}
        case 8 | 28:
            rows = [{"partition_index": 3}, {"partition_index": 4}]
            return {"group_id": group_id, "topics": [topic | {"partitions": rows}]}
        case _:
            return {"group_id": group_id}


def codes_of(key: int, version: int, response: Any) -> list[int]:
    if key == 42:
        return [row.error_code for row in response.results]
    if key in (15, 69) or (key == 9 and version >= 8):
        return [row.error_code for row in response.groups]
    if key in (8, 28) or (key == 9 and version < 2):
        return [row.error_code for topic in response.topics for row in topic.partitions]
    return [response.error_code]


@pytest.mark.parametrize("key", sorted(GROUP_KEYS))
async def test_a_group_that_is_here_or_on_its_way_has_its_coordinator_elsewhere(key: int) -> None:
    async with run_relays() as rig:
        rig.places.places = {"here": Place.MUSTER, "coming": Place.TAKING}
        client = await rig.connect()
        for version in readable_versions(key):
            for group_id in ("here", "coming"):
                response = await client.ask(key, version, **request_of(key, version, group_id))
                codes = codes_of(key, version, response)
                assert codes == [NOT_COORDINATOR] * max(1, len(codes))
        assert rig.broker.received == []
        assert rig.statistics.relay_requests_answered == 2 * len(readable_versions(key))


async def test_a_group_of_another_muster_s_is_not_the_cluster_s() -> None:
    """Its sentinel is in: the cluster would refuse the member for good."""
    async with run_relays(answer_with({11: {"error_code": 23}})) as rig:
        rig.places.elsewhere.add("g")
        client = await rig.connect()
        answer = await client.ask(11, 9, group_id="g", session_timeout=9_000)
        assert answer.error_code == NOT_COORDINATOR


async def test_kafkajs_commits_there_until_its_heartbeat_brings_it_here() -> None:
    async with run_relays(answer_with({8: {}})) as rig:
        rig.places.places = {"g": Place.TAKING}
        rig.places.awaited = {("g", "late")}
        client = await rig.connect()
        await client.ask(8, 5, **request_of(8, 5, "g"), member_id="late")
        assert body_of(rig.broker.received[-1]).member_id == "late"
        for version, member_id in ((5, "early"), (4, "late"), (6, "late")):
            fields = request_of(8, version, "g")
            response = await client.ask(8, version, **fields, member_id=member_id)
            assert codes_of(8, version, response) == [NOT_COORDINATOR] * 2
        response = await client.ask(12, 4, group_id="g", member_id="late")
        assert response.error_code == NOT_COORDINATOR


@pytest.mark.parametrize("key", [11, 12, 13, 14, 8, 47])
async def test_a_group_of_the_cluster_s_passes_byte_for_byte(key: int) -> None:
    async with run_relays(answer_with({key: {}})) as rig:
        client = await rig.connect()
        for version in readable_versions(key):
            await client.ask(key, version, **request_of(key, version, "theirs"))
            assert body_of(rig.broker.received[-1]).group_id == "theirs"
        assert rig.statistics.relay_requests_answered == 0


def describe(frame: bytes) -> bytes:
    """A broker that answers requests of several groups, each group without an error."""
    key, version, number = head_of(frame)
    body = body_of(frame)
    match key:
        case 15:
            rows = [{"group_id": name, "group_state": "Stable"} for name in body.groups]
            return response_frame(key, version, number, groups=rows)
        case 42:
            rows = [{"group_id": name} for name in body.groups_names]
            return response_frame(key, version, number, results=rows)
        case _:
            rows = [{"group_id": row.group_id} for row in body.groups]
            return response_frame(key, version, number, groups=rows)


@pytest.mark.parametrize(
    ("key", "version"),
    [(key, version) for key in (15, 42, 9) for version in readable_versions(key)
     if key != 9 or version >= 8],
)  # fmt: skip
async def test_a_request_of_several_groups_is_split(key: int, version: int) -> None:
    fields: dict[str, Any] = {
        15: {"groups": ("a", "here", "b")},
        42: {"groups_names": ("a", "here", "b")},
        9: {"groups": [{"group_id": "a"}, {"group_id": "here"}, {"group_id": "b"}]},
    }[key]  # type: ignore[assignment]
    async with run_relays(describe) as rig:
        rig.places.places = {"here": Place.MUSTER}
        client = await rig.connect()
        response = await client.ask(key, version, **fields)
        rows = response.results if key == 42 else response.groups
        assert {row.group_id: row.error_code for row in rows} == {
            "a": 0, "b": 0, "here": NOT_COORDINATOR,
        }  # fmt: skip
        assert len(rows) == 3
        asked = body_of(rig.broker.received[0])
        assert "here" not in repr(asked)


def say_to_heartbeats(code: ErrorCode) -> Callable[[bytes], bytes | None]:
    """A broker that gives this code to heartbeats, and answers nothing else."""
    return answer_with({12: {"error_code": code}})


async def test_a_member_of_the_consumer_protocol_asks_to_take_its_group() -> None:
    async with run_relays(say_to_heartbeats(ErrorCode.UNKNOWN_MEMBER_ID)) as rig:
        client = await rig.connect()
        response = await client.ask(68, 1, group_id="g", member_id="m", member_epoch=0)
        assert response.error_code == NOT_COORDINATOR
        assert response.assignment is None
        assert rig.places.asked == [("g", "consumer-protocol")]
        asked = body_of(rig.broker.received[-1])
        assert (asked.group_id, asked.member_id, asked.generation_id) == ("g", "", -1)
        response = await client.ask(69, 1, group_ids=("g",))
        assert [row.error_code for row in response.groups] == [ErrorCode.GROUP_ID_NOT_FOUND]


async def test_a_join_may_be_the_cause_of_taking() -> None:
    async with run_relays(say_to_heartbeats(ErrorCode.NOT_COORDINATOR)) as rig:
        rig.places.taken = {"wanted"}
        client = await rig.connect()
        response = await client.ask(11, 9, group_id="wanted")
        assert response.error_code == NOT_COORDINATOR
        assert rig.places.asked == [("wanted", "joined")]
        assert rig.places.joined == []


@pytest.mark.parametrize(("key", "version"), [(68, 0), (68, 1), (11, 0), (11, 9)])
async def test_nobody_has_a_group_taken_that_it_may_not_read(key: int, version: int) -> None:
    refused = ErrorCode.GROUP_AUTHORIZATION_FAILED
    async with run_relays(say_to_heartbeats(refused)) as rig:
        rig.places.taken = {"g"}
        client = await rig.connect()
        response = await client.ask(key, version, group_id="g", member_id="m")
        assert response.error_code == refused
        assert rig.places.asked == []


@pytest.mark.parametrize("key", [68, 11])
async def test_a_client_that_the_broker_does_not_answer_has_no_group_taken(key: int) -> None:
    async with run_relays() as rig:
        rig.places.taken = {"g"}
        client = await rig.connect()
        client.send(key, 1, group_id="g", member_id="m")
        # A broker closes who has not logged in.
        await until(lambda: bool(rig.broker.received))
        rig.broker.writers[0].close()
        assert await client.is_closed()
        assert rig.places.asked == []


@pytest.mark.parametrize("version", range(10))
async def test_a_member_of_muster_s_that_goes_back_joins_as_a_new_one(version: int) -> None:
    required = {"error_code": ErrorCode.MEMBER_ID_REQUIRED, "member_id": "new"}
    async with run_relays(answer_with({11: required})) as rig:
        rig.places.places = {"g": Place.RETURNING}
        rig.places.known = {("g", "old")}
        client = await rig.connect()
        fields = {"group_id": "g", "session_timeout": 9_000, "protocol_type": "consumer"}
        protocols = [{"name": "range", "metadata": b"what it says"}]
        response = await client.ask(11, version, **fields, protocols=protocols, member_id="old")
        assert (response.error_code, response.member_id) == (79, "new")
        asked = body_of(rig.broker.received[-1])
        assert (asked.member_id, asked.session_timeout) == ("", 9_000)
        assert [(row.name, row.metadata) for row in asked.protocols] == [("range", b"what it says")]
        assert (rig.places.joined, rig.relays.members_of("g")) == ([], {})
        await client.ask(11, version, **fields, protocols=protocols, member_id="new")
        assert body_of(rig.broker.received[-1]).member_id == "new"
        assert rig.places.joined == [("g", "new")]


@pytest.mark.parametrize("key", [8, 12, 14])
async def test_a_member_that_goes_back_has_to_join_before_anything_else(key: int) -> None:
    async with run_relays(answer_with({key: {}})) as rig:
        rig.places.places = {"g": Place.RETURNING}
        rig.places.known = {("g", "old")}
        client = await rig.connect()
        for version in readable_versions(key):
            fields = request_of(key, version, "g")
            response = await client.ask(key, version, **fields, member_id="old")
            codes = codes_of(key, version, response)
            assert codes == [ErrorCode.REBALANCE_IN_PROGRESS] * max(1, len(codes))
            assert rig.broker.received == []
        await client.ask(key, 3, **request_of(key, 3, "g"), member_id="new")
        assert len(rig.broker.received) == 1


async def test_what_waits_in_the_broker_can_be_ended() -> None:
    async with run_relays() as rig:
        client = await rig.connect()
        join = client.send(11, 9, group_id="g", member_id="m")
        beat = client.send(12, 4, group_id="other", member_id="m")
        await until(lambda: len(rig.broker.received) == 2)
        rig.places.places = {"g": Place.TAKING}
        rig.relays.end_waits("other")
        rig.relays.end_waits("g")
        frame = await client.read_frame()
        assert frame[4:8] == join.to_bytes(4, "big")
        assert b"\x00\x10" in frame
        # The broker's late answer is dropped, and what comes after it is not.
        rig.broker.writers[0].write(response_frame(11, 9, join, member_id="m" * 100))
        rig.broker.writers[0].write(response_frame(12, 4, beat))
        assert (await client.read_frame())[4:8] == beat.to_bytes(4, "big")
        assert (await client.ask(12, 4, group_id="g")).error_code == NOT_COORDINATOR


async def test_an_answer_that_never_comes_late_ends_the_connection() -> None:
    async with run_relays(late_answer_ms=0) as rig:
        client = await rig.connect()
        client.send(14, 5, group_id="g", member_id="m")
        await until(lambda: rig.broker.received)
        rig.relays.end_waits("g")
        await client.read_frame()
        assert await client.is_closed()
        assert rig.statistics.relay_connections_closed["no-late-answer"] == 1


async def test_answers_keep_the_order_of_the_requests() -> None:
    async with run_relays() as rig:
        rig.places.places = {"here": Place.MUSTER}
        client = await rig.connect()
        first = client.send(12, 4, group_id="theirs", member_id="m")
        second = client.send(12, 4, group_id="here", member_id="m")
        third = client.send(12, 4, group_id="theirs", member_id="m")
        await until(lambda: len(rig.broker.received) == 2)
        both = response_frame(12, 4, first) + response_frame(12, 4, third)
        rig.broker.writers[0].write(both[:9])
        await asyncio.sleep(0)
        rig.broker.writers[0].write(both[9:])
        frames = [await client.read_frame() for _ in range(3)]
        assert [int.from_bytes(frame[4:8], "big") for frame in frames] == [first, second, third]
        assert frames[1][-3:] == b"\x00\x10\x00"


async def test_members_are_seen_until_they_leave() -> None:
    fields: dict[int, dict[str, Any]] = {12: {}, 13: {}, 14: {}}
    async with run_relays(lambda frame: answer_with(fields)(frame)) as rig:
        client = await rig.connect()
        client.send(
            11, 9, group_id="g", member_id="m1", session_timeout=9_000, rebalance_timeout=70_000,
            group_instance_id="i1",
        )  # fmt: skip
        await until(lambda: rig.relays.members_of("g"))
        member = rig.relays.members_of("g")["m1"]
        assert (member.client_id, member.session_timeout_ms, member.rebalance_timeout_ms) == (
            "c", 9_000, 70_000,
        )  # fmt: skip
        assert (member.instance_id, member.is_joining) == ("i1", True)
        other = await rig.connect()
        await other.ask(12, 4, group_id="g", member_id="m2")
        assert set(rig.relays.members_of("g")) == {"m1", "m2"}
        fields[12] = {"error_code": ErrorCode.UNKNOWN_MEMBER_ID}
        await other.ask(12, 4, group_id="g", member_id="m2")
        await other.ask(12, 4, group_id="g", member_id="guessed")
        assert set(rig.relays.members_of("g")) == {"m1"}
        await other.ask(13, 5, group_id="g", members=[{"member_id": "m1"}])
        assert not rig.relays.members_of("g")


async def test_the_leader_is_who_sends_the_assignment_of_a_generation() -> None:
    async with run_relays(answer_with({11: {}, 12: {}, 14: {}})) as rig:
        client = await rig.connect()
        made = [{"member_id": "m1", "assignment": b"x"}]
        for member_id, assignments in (("m1", made), ("m2", [])):
            names = {"group_id": "g", "member_id": member_id}
            await client.ask(12, 4, **names)
            await client.ask(14, 5, **names, generation_id=4, assignments=assignments)
        seen = rig.relays.members_of("g")
        assert {name: each.led_generation for name, each in seen.items()} == {"m1": 4, "m2": -1}
        await client.ask(11, 9, group_id="g", member_id="m1", session_timeout=9_000)
        assert rig.relays.members_of("g")["m1"].led_generation == -1


async def test_who_is_refused_is_not_seen_and_hides_nobody() -> None:
    async with run_relays(answer_with({12: {}, 11: {"error_code": 30}})) as rig:
        client = await rig.connect()
        await client.ask(12, 4, group_id="g", member_id="m1")
        for member_id in ("m1", "m2"):
            fields = {"group_id": "g", "member_id": member_id, "session_timeout": 0}
            await client.ask(11, 9, **fields)
        assert set(rig.relays.members_of("g")) == {"m1"}


def test_every_api_of_groups_has_its_response_known() -> None:
    for key in GROUP_KEYS:
        for version in readable_versions(key):
            assert response_type(key, version)


async def test_who_is_never_answered_is_no_member() -> None:
    async with run_relays() as rig:
        client = await rig.connect()
        client.send(11, 9, group_id="g", member_id="m", session_timeout=2**31 - 1)
        await until(lambda: bool(rig.broker.received))
        assert set(rig.relays.members_of("g")) == {"m"}
        # A broker closes who has not logged in.
        rig.broker.writers[0].close()
        assert await client.is_closed()
        assert rig.relays.members_of("g") == {}


def commit_of(partitions: int) -> dict[str, Any]:
    rows = [{"partition_index": number} for number in range(partitions)]
    return {"group_id": "g", "topics": [{"name": "orders", "partitions": rows}]}


@pytest.mark.parametrize(
    ("key", "version", "fields"),
    [
        (8, 2, commit_of(ELEMENTS_MAX)),
        (28, 2, commit_of(ELEMENTS_MAX)),
        (14, 3, {"group_id": "g", "assignments": [{}] * (ELEMENTS_MAX + 1)}),
        (15, 4, {"groups": ("",) * (NAMES_MAX + 1)}),
        (10, 4, {"coordinator_keys": ("",) * (KEYS_MAX + 1)}),
    ],
)
async def test_what_would_hold_the_loop_for_long_is_not_looked_at(
    key: int, version: int, fields: dict[str, Any]
) -> None:
    async with run_relays() as rig:
        client = await rig.connect()
        client.send(key, version, **fields)
        assert await client.is_closed()
        assert rig.statistics.relay_connections_closed == {"bad-request": 1}
        assert rig.broker.received == []


async def test_a_commit_of_ten_thousand_partitions_passes() -> None:
    async with run_relays(answer_with({8: {}})) as rig:
        client = await rig.connect()
        await client.ask(8, 2, **commit_of(10_000))
        assert len(rig.broker.received) == 1
