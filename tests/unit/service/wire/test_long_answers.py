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
from coordinator.service.wire import answer_slices
from coordinator.service.wire.answer_slices import run_steps
from coordinator.service.wire.encode import encode_fetched
from model.errors import ErrorCode
from model.ids import GroupId, MemberId, TopicName
from model.responses.groups import (
    DescribedClassicGroup,
    DescribedClassicMember,
    DescribedConsumerGroup,
    DescribedMember,
)
from model.responses.offsets import FetchedOffset, FetchedTopic
from model.topics import TopicImage

ROWS = 40
SLICE = 4


def consumer_group() -> Steps[Any]:
    members = tuple(
        DescribedMember(
            member_id=MemberId(f"m{number:02d}"),
            instance_id=None,
            rack_id=None,
            member_epoch=number,
            client_id="c",
            client_host="/h",
            subscribed_topic_names=(TopicName("t"),),
            subscribed_topic_regex=None,
            assignment=(),
            pending_revocation=(),
            target_assignment=(),
            state="STABLE",
            member_type=1,
        )
        for number in reversed(range(ROWS))
    )
    group = DescribedConsumerGroup(GroupId("g"), ErrorCode.NONE, None, "Stable", members=members)
    return encode_consumer_group(group)


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
