"""Heartbeats of classic members of consumer groups are parked, in virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.heartbeats.parking import TICK_MS
from model.commands.classic import SyncGroup
from model.commands.offsets import OffsetCommit
from model.errors import RebalanceInProgress
from model.responses.classic import ClassicHeartbeatResponse, SyncGroupResponse
from model.responses.offsets import OffsetCommitResponse
from tests.support.gateway.wire_door import Door, Gateway
from tests.support.gateway.wire_rig import with_settings

COMMIT, HEARTBEAT, SYNC = 8, 12, 14
INTERVAL_S = 3.0
PARK_S = 3.0 - 3.0 / 16
PARK_MAX_MS = 15_000


def connect(settings: Any = None, park_max_ms: int = PARK_MAX_MS) -> Door:
    """A connection to a coordinator without pending changes."""
    gateway = Gateway(settings)
    gateway.coordinator.answer = lambda command: (
        OffsetCommitResponse(())
        if isinstance(command, OffsetCommit)
        else ClassicHeartbeatResponse(park_max_ms)
    )
    return gateway.connect()


def beat(door: Door, number: int, generation: int = 5, member: str = "m") -> None:
    who = {"group_id": "g", "member_id": member, "generation_id": generation}
    door.request(HEARTBEAT, 4, number, **who, group_instance_id=None)


def codes(door: Door) -> list[tuple[int, int]]:
    return [(number, answer.error_code) for number, answer in door.answers(HEARTBEAT, 4)]


@pytest.fixture
def door() -> Door:
    """A connection whose member's 3 s interval is known and has just passed."""
    door = connect()
    beat(door, 1)
    assert codes(door) == [(1, 0)], "of the first one nothing is known"
    door.gateway.clock.advance(INTERVAL_S)
    return door


def test_a_heartbeat_is_held_back_until_shortly_before_the_next_one(door: Door) -> None:
    for number in range(2, 6):
        beat(door, number)
        door.gateway.clock.advance(PARK_S - TICK_MS / 1_000 - 0.001)
        assert codes(door) == []
        door.gateway.clock.advance(TICK_MS / 1_000 + 0.001)
        assert codes(door) == [(number, 0)]
        door.gateway.clock.advance(INTERVAL_S - PARK_S)
    by_server = [command.by_server for command in door.gateway.coordinator.commands]
    assert by_server == [False] + 4 * [False, True], "what the server asks is no sign of life"


def test_news_is_told_at_once(door: Door) -> None:
    beat(door, 2)
    door.gateway.clock.advance(0.1)
    assert codes(door) == []
    door.gateway.coordinator.answer = lambda command: RebalanceInProgress("a step")
    door.gateway.coordinator.send_change()
    assert codes(door) == [(2, 27)]
    door.gateway.clock.advance(10)
    assert codes(door) == [], "one answer only"


def test_a_member_that_must_join_again_is_not_held_back(door: Door) -> None:
    door.gateway.coordinator.answer = lambda command: RebalanceInProgress("a step")
    beat(door, 2)
    assert codes(door) == [(2, 27)]


def test_a_commit_does_not_wait_behind_a_parked_heartbeat(door: Door) -> None:
    beat(door, 2)
    door.gateway.clock.advance(1)
    who = {"group_id": "g", "member_id": "m", "generation_id_or_member_epoch": 5}
    door.request(COMMIT, 8, 3, **who, group_instance_id=None, topics=())
    assert [int.from_bytes(data[:4], "big") for data in door.frames()] == [2, 3]


def test_the_next_heartbeat_ends_the_park_of_the_last_one(door: Door) -> None:
    """Its client is quicker than it was."""
    beat(door, 2)
    door.gateway.clock.advance(2)
    beat(door, 3)
    assert codes(door) == [(2, 0)]
    door.gateway.clock.advance(2)
    assert codes(door) == [(3, 0)], "parked for the shorter interval"


def test_a_member_that_is_heard_elsewhere_is_not_asked_for(door: Door) -> None:
    """The old connection gets the answer computed when its heartbeat arrived."""
    beat(door, 2)
    asked = len(door.gateway.coordinator.commands)
    door.gateway.coordinator.drop_watches()
    assert codes(door) == [(2, 0)]
    door.gateway.clock.advance(10)
    assert codes(door) == []
    assert len(door.gateway.coordinator.commands) == asked


def test_a_lost_connection_drops_watch_and_answer(door: Door) -> None:
    beat(door, 2)
    asked = len(door.gateway.coordinator.commands)
    door.lose()
    door.gateway.clock.advance(10)
    assert len(door.gateway.coordinator.commands) == asked
    assert all(watch.is_cancelled for watch in door.gateway.coordinator.watches)


def test_a_server_that_stops_answers_and_parks_no_more(door: Door) -> None:
    beat(door, 2)
    door.gateway.heartbeats.stop_parking()
    door.connection.drain()
    assert codes(door) == [(2, 0)]
    door.gateway.clock.advance(INTERVAL_S)
    beat(door, 3)
    assert codes(door) == [(3, 0)]


def sync(door: Door, generation: int = 5) -> None:
    """Send the member its assignment."""
    coordinator = door.gateway.coordinator
    before = coordinator.answer
    coordinator.answer = lambda command: SyncGroupResponse("consumer", "range", b"")
    who = {"group_id": "g", "member_id": "m", "generation_id": generation}
    named = {"protocol_type": "consumer", "protocol_name": "range"}
    door.request(SYNC, 5, 1, **who, **named, group_instance_id=None, assignments=())
    assert door.frames()
    coordinator.answer = before


def test_the_interval_is_known_from_the_sync_on() -> None:
    door = connect()
    sync(door)
    door.gateway.clock.advance(INTERVAL_S)
    beat(door, 2)
    door.gateway.clock.advance(1)
    assert codes(door) == []


def test_a_gap_between_two_generations_is_no_interval(door: Door) -> None:
    """The member rejoined in between, and its client restarted its timer."""
    door.gateway.clock.advance(1)
    beat(door, 2, generation=6)
    assert codes(door) == [(2, 0)]
    door.gateway.clock.advance(INTERVAL_S)
    beat(door, 3, generation=6)
    door.gateway.clock.advance(PARK_S)
    assert codes(door) == [(3, 0)]


def test_after_a_longer_gap_the_interval_is_measured_anew(door: Door) -> None:
    """Trigger: one heartbeat was late, so the next one followed soon after."""
    beat(door, 2)
    door.gateway.clock.advance(1)
    beat(door, 3)
    door.gateway.clock.advance(INTERVAL_S)
    assert codes(door) == [(2, 0), (3, 0)], "parked for 1 s, as long as it was known to be"
    beat(door, 4)
    assert codes(door) == [(4, 0)], "answered at once, to see when the next one comes"
    door.gateway.clock.advance(INTERVAL_S)
    beat(door, 5)
    door.gateway.clock.advance(PARK_S - 0.03)
    assert codes(door) == []


def test_an_interval_that_grows_a_little_is_followed(door: Door) -> None:
    for number in range(2, 6):
        beat(door, number)
        door.gateway.clock.advance(INTERVAL_S + 0.1)
    codes(door)
    beat(door, 6)
    door.gateway.clock.advance(PARK_S + 0.05)
    assert codes(door) == [], "parked for longer than at first"


def test_a_first_heartbeat_that_comes_at_once_does_not_hide_the_interval() -> None:
    """librdkafka sends the first one on the SyncGroup response, the second one 3 s later."""
    door = connect()
    sync(door)
    beat(door, 2)
    assert codes(door) == [(2, 0)]
    door.gateway.clock.advance(INTERVAL_S)
    beat(door, 3)
    door.gateway.clock.advance(1)
    assert codes(door) == []
    sync(door, generation=6)
    beat(door, 4, generation=6)
    door.gateway.clock.advance(1)
    assert codes(door) == [], "what was known is not forgotten for it"


@pytest.mark.parametrize(
    ("settings", "park_max_ms"),
    [(with_settings(gateway_park_ms=0), PARK_MAX_MS), (None, 0)],
    ids=["parking is off", "the group is a classic one"],
)
def test_a_heartbeat_that_may_not_be_parked_is_answered_at_once(
    settings: Any, park_max_ms: int
) -> None:
    door = connect(settings, park_max_ms)
    for number in range(4):
        beat(door, number)
        assert codes(door) == [(number, 0)]
        door.gateway.clock.advance(INTERVAL_S)


def test_a_park_is_no_longer_than_the_coordinator_allows(door: Door) -> None:
    door.gateway.coordinator.answer = lambda command: ClassicHeartbeatResponse(2_000)
    beat(door, 2)
    door.gateway.clock.advance(1.9)
    assert codes(door) == [(2, 0)]


def test_several_members_on_one_connection_are_not_parked() -> None:
    door = connect()
    for number in range(8):
        beat(door, number, member=f"m{number % 2}")
        assert codes(door) == [(number, 0)]
        door.gateway.clock.advance(1)


def test_heartbeats_that_come_faster_than_a_park_is_worth_are_answered_at_once() -> None:
    door = connect()
    for number in range(20):
        beat(door, number)
        assert codes(door) == [(number, 0)]
        door.gateway.clock.advance(0.05)


# ------------------------------------------------------------------------------------ SyncGroup

NOTHING_YET = SyncGroupResponse("consumer", "range", b"", awaits_partitions=True)


def send_sync(door: Door, number: int, answer: SyncGroupResponse) -> None:
    """A SyncGroup with this answer; heartbeats of the member succeed."""
    door.gateway.coordinator.answer = lambda command: (
        answer if isinstance(command, SyncGroup) else ClassicHeartbeatResponse(PARK_MAX_MS)
    )
    who = {"group_id": "g", "member_id": "m", "generation_id": 5}
    door.request(SYNC, 3, number, **who, group_instance_id=None, assignments=())


def sync_codes(door: Door) -> list[tuple[int, int]]:
    return [(number, answer.error_code) for number, answer in door.answers(SYNC, 3)]


def test_a_member_that_is_given_something_is_told_at_once() -> None:
    door = connect()
    send_sync(door, 1, SyncGroupResponse("consumer", "range", b"something"))
    assert sync_codes(door) == [(1, 0)]


def test_a_member_that_has_nothing_yet_is_told_so_a_second_later() -> None:
    door = connect()
    send_sync(door, 1, NOTHING_YET)
    door.gateway.clock.advance(0.97)
    assert sync_codes(door) == []
    door.gateway.clock.advance(0.03)
    assert sync_codes(door) == [(1, 0)]
    assert len(door.frames()) == 0


def test_a_member_that_has_nothing_yet_joins_again_when_there_is_something() -> None:
    door = connect()
    send_sync(door, 1, NOTHING_YET)
    door.gateway.coordinator.answer = lambda command: RebalanceInProgress("a step")
    door.gateway.coordinator.send_change()
    assert sync_codes(door) == [(1, 27)]


def test_a_member_that_joined_again_and_still_has_nothing_is_not_held_back_again() -> None:
    """Otherwise it might rejoin in a tight loop."""
    door = connect()
    send_sync(door, 1, NOTHING_YET)
    door.gateway.clock.advance(1)
    send_sync(door, 2, NOTHING_YET)
    assert sync_codes(door) == [(1, 0), (2, 0)]
    door.gateway.clock.advance(2)
    send_sync(door, 3, NOTHING_YET)
    assert sync_codes(door) == []


def test_a_parked_sync_is_answered_when_parking_is_off_and_when_the_server_stops() -> None:
    door = connect(with_settings(gateway_park_ms=0))
    send_sync(door, 1, NOTHING_YET)
    assert sync_codes(door) == [(1, 0)]
    door = connect()
    send_sync(door, 1, NOTHING_YET)
    door.connection.drain()
    assert sync_codes(door) == [(1, 0)]
    assert door.connection.is_idle
