"""Long gRPC responses: encoding in slices gives the same response as encoding at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from coordinator.runtime.loop.slices import Steps, run_at_once
from coordinator.service.admin.description_messages import (
    encode_classic_group,
    encode_consumer_group,
)
from coordinator.service.admin.group_descriptions import describe_group
from coordinator.service.wire import answer_slices
from coordinator.service.wire.answer_slices import run_steps
from coordinator.service.wire.encode import encode_fetched
from model.caller import INTERNAL
from model.errors import ErrorCode
from model.ids import GroupId, MemberId, TopicName
from model.responses.groups import (
    ConsumerGroupDescribeResponse,
    DescribedClassicGroup,
    DescribedClassicMember,
    DescribedConsumerGroup,
    DescribedMember,
)
from model.responses.offsets import FetchedOffset, FetchedTopic
from model.topics import TopicImage

ROWS = 40
SLICE = 4
TOPICS = 20_000


def make_members(topics: int) -> tuple[DescribedMember, ...]:
    return tuple(
        DescribedMember(
            member_id=MemberId(f"m{number:02d}"),
            instance_id=None,
            rack_id=None,
            member_epoch=number,
            client_id="c",
            client_host="/h",
            subscribed_topic_names=tuple(TopicName(f"t{topic}") for topic in range(topics)),
            subscribed_topic_regex=None,
            assignment=(),
            pending_revocation=(),
            target_assignment=(),
            state="STABLE",
            member_type=1,
        )
        for number in reversed(range(ROWS))
    )


def make_group(topics: int) -> DescribedConsumerGroup:
    members = make_members(topics)
    return DescribedConsumerGroup(GroupId("g"), ErrorCode.NONE, None, "Stable", members=members)


def consumer_group() -> Steps[Any]:
    return encode_consumer_group(make_group(1))


def classic_group() -> Steps[Any]:
    members = tuple(
        DescribedClassicMember(MemberId(f"m{number:02d}"), None, "c", "/h", b"", b"")
        for number in reversed(range(ROWS))
    )
    group = DescribedClassicGroup(
        GroupId("g"), ErrorCode.NONE, None, "Stable", "connect", "p", 1, members
    )
    return encode_classic_group(group, TopicImage())


def offsets() -> Steps[Any]:
    rows = tuple(FetchedOffset(number, number, None, "") for number in range(ROWS))
    return encode_fetched(FetchedTopic(TopicName("t"), None, rows))


@pytest.mark.parametrize("encode", [consumer_group, classic_group, offsets])
async def test_many_rows_are_encoded_in_slices(
    encode: Callable[[], Steps[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = run_at_once(encode())
    assert not list(encode()), "so few are encoded in one turn"
    monkeypatch.setattr(answer_slices, "SLICE", SLICE)
    assert len(list(encode())) >= ROWS / SLICE - 1
    encoded = await run_steps(encode())
    assert encoded == at_once
    assert len(getattr(encoded, "members", ()) or encoded.partitions) == ROWS


async def test_a_member_with_very_many_topics_takes_turns_of_its_own() -> None:
    group = make_group(TOPICS)
    turns = 0

    class Answers:
        async def call(self, command: object) -> ConsumerGroupDescribeResponse:
            return ConsumerGroupDescribeResponse((group,))

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count_turns())
    found = await describe_group(Answers(), INTERNAL, GroupId("g"))  # type: ignore[arg-type]
    counting.cancel()
    assert len(found.topics) == TOPICS
    assert turns >= 2 * ROWS, "to encode the members, and to find their topics"


async def test_others_go_on_between_two_slices() -> None:
    turns: list[str] = []

    def steps() -> Steps[None]:
        for _ in range(3):
            turns.append("slice")
            yield

    async def go_on() -> None:
        for _ in range(3):
            turns.append("other")
            await asyncio.sleep(0)

    await asyncio.gather(run_steps(steps()), go_on())
    assert turns == ["slice", "other"] * 3
