"""A member of the consumer protocol: what its heartbeats say after each response."""

from __future__ import annotations

import struct
from typing import Any, cast

import pytest

from cli.load.members.consumer_member import ConsumerMember
from cli.load.members.group import Group
from cli.load.members.member import Member
from cli.load.wire.lane import Call, Lane
from cli.load.wire.messages import CONSUMER_GROUP_HEARTBEAT, MalformedAnswer
from gateway.codec.kio_schema import request_type, response_type
from gateway.headers import FIXED_BYTES, skip_header
from tests.support.wire.codec import decode, encode
from tests.support.wire.frames import make_entity

TOPIC = ("t", bytes(range(16)))
FENCED = 110


class Keeper:
    """Notes what the member says; it is its lane, too."""

    def __init__(self) -> None:
        self.controls: list[Call] = []
        self.left: list[Member] = []
        self.sooner: list[int] = []

    def add_control(self, call: Call) -> None:
        self.controls.append(call)

    def note_left(self, member: Member) -> None:
        self.left.append(member)

    def note_interval(self, member: Member) -> None:
        self.sooner.append(member.interval_ns)


class Pair:
    """A member alone in its group of four partitions, and its keeper."""

    def __init__(self) -> None:
        self.keeper = Keeper()
        self.took: list[int] = []
        self.group = Group("g", 4, self.took.append)
        self.member = ConsumerMember(self.group, cast(Lane, self.keeper), TOPIC, self.keeper)
        self.member.join()

    def send(self, call: Call | None = None) -> Any:
        """The request that is sent now, and its frame for the response."""
        self.frame = (call or self.member).make_frame()
        target = request_type(*CONSUMER_GROUP_HEARTBEAT)
        body = self.frame[4:]
        _, start = skip_header(body, FIXED_BYTES, len(body), True)
        return decode(target, body, start)

    def make_answer(self, epoch: int, partitions: tuple[int, ...] | None, **said: Any) -> bytes:
        rows = None
        if partitions is not None:
            row = {"topic_id": TOPIC[1], "partitions": partitions}
            rows = {"topic_partitions": [row] if partitions else []}
        values = {"member_epoch": epoch, "heartbeat_interval": 5_000, "assignment": rows, **said}
        target = response_type(*CONSUMER_GROUP_HEARTBEAT)
        body = self.frame[8:12] + b"\0" + encode(target, make_entity(target, values))
        return struct.pack(">i", len(body)) + body


def test_it_joins_acknowledges_and_is_quiet() -> None:
    pair = Pair()
    asked = pair.send()
    assert (asked.member_epoch, asked.subscribed_topic_names) == (0, ("t",))
    assert asked.topic_partitions == ()
    assert pair.member.handle(pair.make_answer(1, (3, 0, 1, 2))) == 0
    assert not pair.took, "it has not acknowledged"
    assert pair.keeper.controls == [pair.member] * 2
    asked = pair.send()
    assert asked.member_epoch == 1
    assert [row.partitions for row in asked.topic_partitions] == [(0, 1, 2, 3)]
    assert asked.subscribed_topic_names is None
    pair.member.handle(pair.make_answer(1, None))
    assert len(pair.took) == 1
    assert pair.send().topic_partitions is None
    answer = pair.make_answer(1, None)
    pair.member.handle(answer)
    assert pair.member.quiet == answer


def test_a_response_to_an_earlier_heartbeat_does_not_cancel_the_acknowledgement() -> None:
    pair = Pair()
    pair.send()
    pair.member.handle(pair.make_answer(1, (0, 1, 2, 3)))
    # It was sent before that response came, and says the same.
    pair.member.handle(pair.make_answer(1, (0, 1, 2, 3)))
    assert not pair.took
    assert pair.send().topic_partitions is not None
    pair.member.handle(pair.make_answer(1, None))
    assert len(pair.took) == 1


def test_what_it_must_revoke_it_no_longer_reports() -> None:
    pair = Pair()
    pair.send()
    pair.member.handle(pair.make_answer(1, (0, 1, 2, 3)))
    pair.send()
    pair.member.handle(pair.make_answer(2, (0, 1), heartbeat_interval=100))
    assert pair.keeper.sooner == [100_000_000]
    assert [row.partitions for row in pair.send().topic_partitions] == [(0, 1)]
    assert not pair.group.is_complete


def test_a_fenced_member_joins_again_without_its_partitions() -> None:
    pair = Pair()
    pair.send()
    pair.member.handle(pair.make_answer(1, (0, 1, 2, 3)))
    pair.send()
    assert pair.member.handle(pair.make_answer(0, None, error_code=FENCED)) == FENCED
    assert (pair.member.epoch, pair.member.owned) == (0, ())
    asked = pair.send()
    assert (asked.member_epoch, asked.topic_partitions) == (0, ())


def test_after_a_lost_connection_it_says_everything_once() -> None:
    pair = Pair()
    pair.send()
    pair.member.handle(pair.make_answer(1, (0, 1, 2, 3)))
    pair.send()
    pair.member.handle(pair.make_answer(1, None))
    pair.member.note_reconnected()
    asked = pair.send()
    assert (asked.member_epoch, asked.subscribed_topic_names) == (1, ("t",))
    assert [row.partitions for row in asked.topic_partitions] == [(0, 1, 2, 3)]
    pair.member.handle(pair.make_answer(1, (0, 1, 2, 3)))
    assert pair.send().topic_partitions is None


@pytest.mark.parametrize("interval_ms", [0, -5])
def test_an_interval_of_nothing_is_the_shortest_one(interval_ms: int) -> None:
    """Bug: the next heartbeat was due at once, and the process looked for it for ever."""
    pair = Pair()
    pair.send()
    pair.member.handle(pair.make_answer(1, (0, 1, 2, 3), heartbeat_interval=interval_ms))
    assert pair.member.interval_ns > 0


def test_it_leaves_once() -> None:
    pair = Pair()
    pair.send()
    pair.member.handle(pair.make_answer(1, (0, 1, 2, 3)))
    pair.member.leave()
    leave = pair.keeper.controls[-1]
    assert pair.send(leave).member_epoch == -1
    assert leave.handle(pair.make_answer(-1, None)) == 0
    assert pair.keeper.left == [pair.member]


def test_an_answer_to_another_request_is_malformed() -> None:
    pair = Pair()
    pair.send()
    answer = bytearray(pair.make_answer(1, None))
    answer[7] ^= 0x40
    with pytest.raises(MalformedAnswer):
        pair.member.handle(bytes(answer))
