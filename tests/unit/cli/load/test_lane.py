"""A lane sends calls in turn, and those that are exclusive one at a time."""

from __future__ import annotations

import asyncio
from typing import cast

from cli.load.wire.lane import Call, Lane
from cli.load.wire.request_schedule import RequestSchedule

ANSWER = b"\0\0\0\x01x"


class Numbered(Call):
    """A call whose frame is its number."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._frame = bytes([number])

    def make_frame(self) -> bytes:
        return self._frame

    def handle(self, answer: bytes) -> int:
        return 0


class Exclusive(Numbered):
    is_exclusive = True


class Meter:
    def record(self, now_ns: int, intended_ns: int, sent_ns: int, code: int) -> None:
        pass

    def record_control(self, code: int) -> None:
        pass

    def wait_for_work(self, lane: Lane) -> None:
        assert not lane.calls, "something is due all the time"

    def __init__(self) -> None:
        self.lost: list[str] = []

    def lose(self, lane: Lane, why: str) -> None:
        self.lost.append(why)


class Transport:
    """Keeps what was written."""

    def __init__(self) -> None:
        self.written = b""
        self.closes = False

    def is_closing(self) -> bool:
        return self.closes

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        pass

    def write(self, data: bytes) -> None:
        self.written += data


def attach(limit: int, *calls: Call) -> tuple[Lane, Transport]:
    schedule = RequestSchedule(0, 0)
    schedule.start(0, 1 << 62)
    lane = Lane("a:1", limit, schedule, Meter())
    lane.calls.extend(calls)
    transport = Transport()
    lane.attach(cast(asyncio.Transport, transport))
    return lane, transport


def test_calls_are_sent_in_turn_up_to_the_limit() -> None:
    lane, transport = attach(3, Numbered(0), Numbered(1))
    assert transport.written == b"\1\0\1"
    lane.data_received(ANSWER)
    assert transport.written == b"\1\0\1\0"


def test_an_exclusive_call_waits_for_its_answer_and_others_go_on() -> None:
    lane, transport = attach(4, Exclusive(0), Exclusive(1), Numbered(2))
    assert transport.written == b"\1\2\0\2"
    lane.data_received(ANSWER)
    assert transport.written == b"\1\2\0\2\1"


def test_a_lane_of_one_member_has_one_heartbeat_in_flight() -> None:
    lane, transport = attach(5, Exclusive(7))
    assert transport.written == b"\7"
    lane.data_received(ANSWER)
    assert transport.written == b"\7\7"


def test_an_acknowledgement_is_not_followed_by_a_heartbeat_of_the_member() -> None:
    lane, transport = attach(2)
    member = Exclusive(3)
    lane.add_control(member)
    lane.calls.append(member)
    lane.fill()
    assert transport.written == b"\3"
    lane.data_received(ANSWER)
    assert transport.written == b"\3\3"


def test_a_connection_that_was_closed_before_it_is_used_is_lost() -> None:
    """Bug: requests were written to nobody, and timed out."""
    meter, transport = Meter(), Transport()
    transport.closes = True
    lane = Lane("a:1", 1, RequestSchedule(0, 0), meter)
    lane.controls.append(Numbered(1))
    lane.attach(cast(asyncio.Transport, transport))
    assert meter.lost == ["CONNECTION_LOST"]
    assert not lane.is_open
    assert not transport.written
    assert lane.controls
