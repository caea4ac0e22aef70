"""Long gRPC responses: encoding in slices gives the same response as encoding at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from coordinator.runtime.loop.slices import Steps, run_at_once
from coordinator.service.admin import description_messages
from coordinator.service.admin.description_messages import (
    MemberEncoder,
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
from muster.v1 import admin_pb2

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


def test_only_members_that_have_changed_are_encoded_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoded: list[MemberId] = []
    encode = description_messages.encode_member

    def note(member: DescribedMember) -> admin_pb2.GroupMember:
        encoded.append(member.member_id)
        return encode(member)

    monkeypatch.setattr(description_messages, "encode_member", note)
    encoder = MemberEncoder()
    one, other, third = make_members(1)[:3]
    changed = replace(other, member_epoch=99)
    for members, again in (
        ((one, other), {one.member_id, other.member_id}),
        ((one, other), set()),
        ((one, changed, third), {other.member_id, third.member_id}),
        ((changed,), set()),
        ((one, changed), {one.member_id}),
    ):
        encoded.clear()
        group = replace(make_group(1), members=members)
        found = run_at_once(encode_consumer_group(group, encoder))
        assert set(encoded) == again
        assert found == run_at_once(encode_consumer_group(group))


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
