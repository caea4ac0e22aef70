"""Clients with a long round trip are answered before they give up. In virtual time.

The clients here are as the real ones are where it matters (tests/latency runs those): librdkafka
gives a heartbeat up when the interval that its last answer told has passed since it sent it, and
sends the next one when that of the new answer has; Java counts from the answer where the interval
changes; franz-go always does.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.pace.pacing import (
    Pace,
    compute_gap_ms,
    compute_park_ms,
    compute_probe_ms,
    compute_rest_ms,
)
from gateway.pace.round_trip import RecentDelay, RoundTrip
from tests.support.gateway.fake_coordinator import answer_of
from tests.support.gateway.wire_door import Door, Gateway
from tests.support.gateway.wire_rig import with_settings
from tests.support.wire.fields import beat, join

HEARTBEAT, VERSIONS = 68, 18
STEP_S = 0.001
REST_MS = 550
PACE = Pace(500, 550, 100, 50, 50)
Way = Callable[[], float]


def constant(round_trip_ms: float) -> Way:
    return lambda: round_trip_ms / 2


def jittering(round_trip_ms: float, seed: int = 1) -> Way:
    draw = random.Random(seed)
    return lambda: round_trip_ms / 2 * draw.uniform(0.8, 1.2)


class Client:
    """A client with a long round trip: it sends ApiVersions, joins, and heartbeats.

    It is a model of when a client sends; an assignment is none of its business.
    """

    def __init__(self, kind: str, way_ms: Way, gateway: Gateway | None = None) -> None:
        self.kind = kind
        self.way_ms = way_ms
        self.gateway = gateway or Gateway()
        self.clock = self.gateway.clock
        self.door: Door = self.gateway.connect()
        self.intervals_ms: list[int] = []
        self.overdue_ms: list[float] = []
        """How much longer than it was told to wait each answer took; below 0 for in time."""
        self.held_ms: list[float] = []
        self.stall_ms = 0.0

    def exchange(self, send: Callable[[], None]) -> tuple[float, float]:
        """Send, wait for the response, and return (sent, received) in milliseconds."""
        sent = self.clock.time() * 1_000
        self.clock.advance(self.way_ms() / 1_000)
        arrived = self.clock.time() * 1_000
        send()
        while not self.door.transport.written[self.door._read :]:
            self.clock.advance(STEP_S)
        self.held_ms.append(self.clock.time() * 1_000 - arrived)
        self.clock.advance(self.way_ms() / 1_000)
        return sent, self.clock.time() * 1_000

    def begin(self) -> None:
        self.exchange(lambda: self.door.request(VERSIONS, 0, 1))
        self.door.frames()
        self.held_ms.clear()
        self.heartbeat(is_join=True)

    def heartbeat(self, is_join: bool = False) -> None:
        """Send one, and wait until the next one is due."""
        fields = join("g", "m", ("t",)) if is_join else beat("g", "m", 5)
        sent, received = self.exchange(lambda: self.door.request(HEARTBEAT, 1, 2, **fields))
        [(_, answer)] = self.door.answers(HEARTBEAT, 1)
        if self.intervals_ms:
            self.overdue_ms.append(received - sent - self.intervals_ms[-1])
        interval_ms = answer.heartbeat_interval
        is_new = not self.intervals_ms or self.intervals_ms[-1] != interval_ms
        counts_from_answer = self.kind == "franz-go" or (self.kind == "java" and is_new)
        due = (received if counts_from_answer else sent) + interval_ms
        self.intervals_ms.append(interval_ms)
        self.clock.advance(max(0.0, due - received + self.stall_ms) / 1_000)
        self.stall_ms = 0.0

    def heartbeats(self, count: int) -> Iterator[int]:
        for number in range(count):
            self.heartbeat()
            yield number

    def run(self, count: int = 40) -> None:
        for _ in self.heartbeats(count):
            pass


KINDS = ("librdkafka", "java", "franz-go")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("round_trip_ms", [0, 20, 100, 200, 300, 800])
def test_no_answer_is_given_up(kind: str, round_trip_ms: int) -> None:
    client = Client(kind, jittering(round_trip_ms))
    client.begin()
    client.run(60)
    assert max(client.overdue_ms) < 0
    assert max(client.held_ms) > 400, "it is held all the same"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("round_trip_ms", [0, 5, 15])
def test_a_client_that_is_near_is_told_what_it_always_was(kind: str, round_trip_ms: int) -> None:
    """The gap decides how fast a group converges."""
    client = Client(kind, constant(round_trip_ms))
    client.begin()
    client.run(30)
    assert client.intervals_ms[:7] == [100, 200, 300, 400, 500, REST_MS, REST_MS]
    assert set(client.intervals_ms[7:]) == {REST_MS}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("round_trip_ms", [0, 300])
def test_nothing_is_held_where_parking_is_off(kind: str, round_trip_ms: int) -> None:
    client = Client(kind, constant(round_trip_ms), Gateway(with_settings(gateway_park_ms=0)))
    client.begin()
    client.run(20)
    assert max(client.held_ms) == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("round_trip_ms", [100, 300, 800])
def test_a_client_that_is_far_is_in_reach_for_a_good_part(kind: str, round_trip_ms: int) -> None:
    client = Client(kind, constant(round_trip_ms))
    client.begin()
    client.run(20)
    began, client.held_ms = client.clock.time(), []
    client.run(40)
    share = sum(client.held_ms) / 1_000 / (client.clock.time() - began)
    # Counting from the answer is out of reach for the way back as well.
    assert share > (0.2 if kind == "franz-go" else 0.3)


def test_news_is_followed_by_intervals_that_are_long_enough() -> None:
    client = Client("librdkafka", jittering(300))
    coordinator = client.gateway.coordinator
    client.begin()
    client.run(10)
    coordinator.answer = lambda command: answer_of(command, has_changes=True, settled=False)
    client.run(5)
    coordinator.answer = answer_of
    client.run(20)
    assert max(client.overdue_ms) < 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_way_that_becomes_longer_is_learned_at_once(kind: str) -> None:
    client = Client(kind, constant(10))
    client.begin()
    client.run(20)
    client.way_ms, client.overdue_ms = constant(300), []
    client.run(60)
    assert sum(overdue > 0 for overdue in client.overdue_ms) <= 3
    assert max(client.overdue_ms[-30:]) < 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_way_that_becomes_shorter_is_learned_too(kind: str) -> None:
    client = Client(kind, constant(300))
    client.begin()
    client.run(20)
    assert client.intervals_ms[-1] > REST_MS
    client.way_ms = constant(10)
    client.run(150)
    assert client.intervals_ms[-1] <= REST_MS + 200


def test_one_stall_of_a_client_is_forgotten() -> None:
    client = Client("librdkafka", constant(2))
    client.begin()
    client.run(20)
    client.stall_ms = 400
    client.heartbeat()
    client.run(2)
    assert client.intervals_ms[-1] > REST_MS, "should it be a longer way"
    client.run(160)
    assert client.intervals_ms[-1] == REST_MS


def test_a_client_that_was_stopped_says_nothing_of_its_way() -> None:
    client = Client("librdkafka", constant(2))
    client.begin()
    client.run(20)
    client.stall_ms = 60_000
    client.heartbeat()
    client.run(2)
    assert client.intervals_ms[-1] == REST_MS


def test_who_comes_back_while_a_heartbeat_is_held_has_given_it_up() -> None:
    """The heartbeat was parked for too long, whatever the round-trip estimate."""
    first = Client("librdkafka", constant(0))
    first.begin()
    first.run(20)
    first.door.request(HEARTBEAT, 1, 3, **beat("g", "m", 5))
    again = Client("librdkafka", constant(0), first.gateway)
    again.exchange(lambda: again.door.request(VERSIONS, 0, 1))
    again.door.frames()
    again.run(20)
    assert max(again.intervals_ms[:15]) > REST_MS
    assert max(again.overdue_ms) < 0


def test_an_end_that_comes_late_makes_the_gap_longer_for_a_while() -> None:
    delay = RecentDelay()
    delay.note(200, 10.0)
    delay.note(50, 10.1)
    assert delay.compute_ms(10.0) == 200
    assert delay.compute_ms(11.0) == pytest.approx(100)
    assert delay.compute_ms(20.0) < 1


@given(st.floats(0, 5_000), st.floats(0, 5_000), st.integers(0, 1_000))
def test_gap_is_longer_than_what_is_expected(
    allowance_ms: float, delay_ms: float, least_ms: int
) -> None:
    gap_ms = compute_gap_ms(least_ms, allowance_ms, delay_ms)
    assert gap_ms >= least_ms
    assert gap_ms >= allowance_ms + delay_ms or gap_ms == least_ms


@given(st.integers(50, 3_100), st.floats(0, 5_000))
def test_probe_leaves_the_next_answer_its_gap(gap_ms: int, held_ms: float) -> None:
    interval_ms = compute_probe_ms(held_ms, 50, gap_ms)
    assert interval_ms == 0 or interval_ms >= gap_ms > 50
    assert compute_rest_ms(PACE, 50, gap_ms, 10_000) >= 2 * gap_ms - 50


def test_a_probe_is_told_where_the_gap_is_long_and_the_answer_was_held() -> None:
    assert compute_probe_ms(600, 50, 500) == 650
    assert compute_probe_ms(400, 50, 500) == 0
    assert compute_probe_ms(600, 50, 50) == 0


@given(
    st.lists(st.tuples(st.floats(0, 1e5), st.floats(0, 1e5), st.floats(0, 1e5)), max_size=50),
)
def test_whatever_clients_do_the_allowance_is_bounded(
    seen: list[tuple[float, float, float]],
) -> None:
    way = RoundTrip()
    for took_ms, interval_ms, held_ms in seen:
        way.learn(took_ms, interval_ms, held_ms)
        assert 0 <= way.allowance_ms <= 2_000
        gap_ms = compute_gap_ms(50, way.allowance_ms, 0)
        rest_ms = compute_rest_ms(PACE, 50, gap_ms, 5_000)
        assert 0 < rest_ms <= 5_000
        assert compute_park_ms(rest_ms, gap_ms, 5_000) > 0
