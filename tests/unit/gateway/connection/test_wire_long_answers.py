"""Long responses: how many rows one iteration builds, and that the bytes do not change."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.runtime.loop.slices import Steps
from gateway import long_answers
from gateway.api import Api, RequestContext
from gateway.apis.api_registry import APIS
from gateway.apis.topics import k03_metadata
from gateway.codec.encoding import encode
from gateway.codec.kio_schema import request_schema, response_schema, response_type
from gateway.long_answers import LongAnswer, reply_in_slices
from gateway.topics.topic_catalogue import PartitionLeader
from tests.support.authorizers import Rights
from tests.support.gateway.wire_door import Gateway
from tests.support.gateway.wire_rig import Rig, run_rig, with_settings
from tests.support.gateway.wire_steps import (
    COMMIT,
    DESCRIBE,
    FETCH,
    LIST,
    VERSIONS,
    commit_topics,
    member_of,
)
from tests.support.waiting import until_answered
from tests.support.wire.connection import Connection

METADATA = 3
ROWS = 40
SLICE = 4
FAILING = -1
"""The row that cannot be made."""

list_schema = response_schema(LIST)


class CountedTurns:
    """The iterations that long responses take: each call of a slice but the first."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        rest = LongAnswer.rest
        counted = self

        def note(self: LongAnswer) -> Steps[None]:
            for _ in rest(self):
                counted.count += 1
                yield

        monkeypatch.setattr(LongAnswer, "rest", note)


async def ask_raw(client: Connection, key: int, version: int, /, **fields: Any) -> bytes:
    """The bytes of an answer after its correlation id."""
    client.send(key, version, **fields)
    return (await client.read_frame())[4:]


async def fill(rig: Rig, client: Connection) -> None:
    """Many groups, members and offsets."""
    await rig.create_topic("t", ROWS)
    for number in range(ROWS):
        topics = commit_topics(9, "t", {0: (1, "")})
        await client.ask(COMMIT, 9, group_id=f"group-{number}", topics=topics)
        await member_of(client, "large", f"m{number}")
    rows = {number: (number, f"said {number}") for number in range(ROWS)}
    await client.ask(COMMIT, 9, group_id="large-offsets", topics=commit_topics(9, "t", rows))
    # The last target of the members follows after an interval, and changes what is described.
    await until_answered(
        lambda: client.ask(DESCRIBE, 1, group_ids=("large",)),
        lambda answer: answer.groups[0].group_epoch == answer.groups[0].assignment_epoch,
    )


def make_questions() -> list[tuple[int, int, dict[str, Any]]]:
    """Requests in each version whose answers have many rows."""
    wanted = tuple(range(ROWS))
    questions: list[tuple[int, int, dict[str, Any]]] = [
        *((LIST, version, {}) for version in range(6)),
        *((DESCRIBE, version, {"group_ids": ("large", "nobody")}) for version in range(2)),
    ]
    for version in range(1, 11):
        wire = request_schema(FETCH, version)
        if version < 8:
            topic = wire.OffsetFetchRequestTopic(name="t", partition_indexes=wanted)
            questions.append((FETCH, version, {"group_id": "large-offsets", "topics": (topic,)}))
        else:
            group = wire.OffsetFetchRequestGroup(group_id="large-offsets", topics=None)
            questions.append((FETCH, version, {"groups": (group, group)}))
    return questions


async def test_an_answer_is_the_same_in_slices_and_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async with run_rig(with_settings(gateway_park_ms=0)) as rig, await rig.connect() as client:
        await fill(rig, client)
        turns = CountedTurns(monkeypatch)
        for key, version, fields in make_questions():
            at_once = await ask_raw(client, key, version, **fields)
            assert not turns.count, "so few are answered at once"
            monkeypatch.setattr(long_answers, "SLICE", SLICE)
            assert await ask_raw(client, key, version, **fields) == at_once
            assert turns.count >= ROWS / SLICE
            monkeypatch.setattr(long_answers, "SLICE", 1_000)
            turns.count = 0


async def test_what_a_caller_may_see_is_found_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    rights = Rights(is_denied=lambda asked: asked.resource_name == "secret")
    async with (
        run_rig(with_settings(gateway_park_ms=0), authorizer=rights) as rig,
        await rig.connect() as client,
    ):
        await rig.create_topic("t", ROWS)
        for number in range(ROWS):
            await member_of(client, "large", f"m{number}")
        turns = CountedTurns(monkeypatch)
        monkeypatch.setattr(long_answers, "SLICE", SLICE)
        (group,) = (await client.ask(DESCRIBE, 1, group_ids=("large",))).groups
        assert group.error_code == 0
        assert len(group.members) == ROWS
        # Once for the names of the topics, and once for the rows.
        assert turns.count >= 2 * ROWS / SLICE


# ------------------------------------------------------------------------------------- turns


def answer_with(rows: int, made: list[int]) -> Api:
    """A ListGroups response of many groups, which notes each in ``made`` when it is built."""

    def make(number: int) -> Any:
        made.append(number)
        if number == FAILING:
            raise ValueError("a bug")
        return list_schema.ListedGroup(
            group_id=f"g{number}", protocol_type="", group_state="", group_type=""
        )

    def steps(context: RequestContext) -> Steps[Any]:
        listed = map(make, range(rows))
        groups = yield from LongAnswer(context).encode(
            list_schema.ListedGroup, ("groups",), rows, listed
        )
        return list_schema.ListGroupsResponse(throttle_time=0, error_code=0, groups=groups)

    def handle(context: RequestContext, request: Any) -> None:
        reply_in_slices(context, steps(context))

    known = next(api for api in APIS if api.key == LIST)
    return Api(key=LIST, name=known.name, versions=range(4), handler=handle, failed=known.failed)


def make_gateway(monkeypatch: pytest.MonkeyPatch, made: list[int]) -> Gateway:
    monkeypatch.setattr(long_answers, "SLICE", SLICE)
    others = tuple(api for api in APIS if api.key != LIST)
    return Gateway(apis=(answer_with(ROWS, made), *others))


def turn(gateway: Gateway) -> None:
    """Run one iteration: the calls that were due when it began."""
    clock = gateway.clock
    due, clock._calls = clock._calls, []
    for _, _, timer in sorted(due):
        timer.fire()


def test_others_are_answered_between_two_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    gateway = make_gateway(monkeypatch, made)
    door, other = gateway.connect(), gateway.connect()
    door.request(LIST, 3, 1)
    assert len(made) == SLICE
    other.request(VERSIONS, 0, 2)
    assert len(other.frames()) == 1
    turns = 0
    while not (answers := door.answers(LIST, 3)):
        before = len(made)
        turn(gateway)
        turns += 1
        assert len(made) - before <= SLICE
    assert turns == ROWS / SLICE
    assert len(answers[0][1].groups) == ROWS


def test_answers_that_are_made_beside_each_other_share_the_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[int] = []
    gateway = make_gateway(monkeypatch, made)
    doors = [gateway.connect() for _ in range(5)]
    for door in doors:
        door.request(LIST, 3, 1)
    assert len(made) == 5 * SLICE, "what is in the first slice waits for nobody"
    while any(not door.frames() for door in doors) and len(made) < 5 * ROWS:
        before = len(made)
        turn(gateway)
        # What is left of one, and a slice of the next.
        assert len(made) - before <= 2 * SLICE
    turn(gateway)
    assert len(made) == 5 * ROWS


def test_answers_keep_their_order_behind_a_long_one(monkeypatch: pytest.MonkeyPatch) -> None:
    gateway = make_gateway(monkeypatch, [])
    door = gateway.connect()
    door.request(LIST, 3, 1)
    door.request(VERSIONS, 0, 2)
    assert not door.frames()
    for _ in range(ROWS):
        turn(gateway)
    assert [int.from_bytes(frame[:4], "big") for frame in door.frames()] == [1, 2]


def test_nothing_more_is_made_for_a_client_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    gateway = make_gateway(monkeypatch, made)
    door = gateway.connect()
    door.request(LIST, 3, 1)
    door.lose()
    for _ in range(ROWS):
        turn(gateway)
    assert len(made) == SLICE


def test_a_bug_in_a_later_slice_is_answered(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made: list[int] = []
    gateway = make_gateway(monkeypatch, made)
    door = gateway.connect()
    monkeypatch.setitem(globals(), "FAILING", 2 * SLICE)
    door.request(LIST, 3, 1)
    assert len(made) == SLICE
    for _ in range(ROWS):
        turn(gateway)
    assert [answer.error_code for _, answer in door.answers(LIST, 3)] == [-1]
    assert "kafka_handler_failed" in caplog.text


# ------------------------------------------------------------------------ partitions of a topic


HERE = PartitionLeader(None, 0)
ELSEWHERE = PartitionLeader(0, -1, (0, 1), (0,))


@pytest.mark.parametrize(
    ("version", "leader", "count"),
    [(version, leader, 300) for version in range(14) for leader in (HERE, ELSEWHERE)]
    + [(12, HERE, 70_000)],
)
def test_partitions_that_differ_in_their_index_alone_are_repeated(
    monkeypatch: pytest.MonkeyPatch, version: int, leader: PartitionLeader, count: int
) -> None:
    rows = []
    make_row = k03_metadata._partition

    def note(number: int, leader: PartitionLeader, node_id: int) -> Any:
        rows.append(number)
        return make_row(number, leader, node_id)

    monkeypatch.setattr(k03_metadata, "_partition", note)
    encoded = k03_metadata._encode_partitions(version, 7, leader, count)
    assert len(rows) == 2
    wire = response_schema(METADATA)

    def answer(partitions: Any) -> Any:
        topic = wire.MetadataResponseTopic(
            error_code=0,
            name="t",
            topic_id=b"t" * 16,
            partitions=partitions,
            topic_authorized_operations=0,
        )
        return wire.MetadataResponse(
            throttle_time=0,
            brokers=(),
            cluster_id="c",
            controller_id=1,
            topics=(topic,),
            error_code=0,
        )

    each = tuple(make_row(number, leader, 7) for number in range(count))
    target = response_type(METADATA, version)
    assert encode(target, answer(encoded)) == encode(target, answer(each))


async def test_metadata_of_a_large_topic_makes_no_row_for_each_partition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("a leader is looked up for each partition")

    async with run_rig() as rig, await rig.connect() as client:
        await rig.create_topic("large", 20_000)
        catalogue = rig.server._topics
        monkeypatch.setattr(type(catalogue), "leader_of", fail)
        (topic,) = (await client.ask(METADATA, 12, topics=None)).topics
        assert [row.partition_index for row in topic.partitions] == list(range(20_000))
