"""How long heartbeats are parked, and which intervals are returned."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.connection.peers import compute_java_host, describe_peer
from gateway.connection.refusals import Refusals
from gateway.pace.pacing import Pace, compute_interval_ms, compute_pace, compute_park_ms
from gateway.settings import GatewaySettings
from tests.support.gateway.wire_rig import with_settings


@pytest.mark.parametrize(
    ("members", "pace"),
    [
        (0, Pace(500, 550, 100, 50, 50)),
        (1, Pace(500, 550, 100, 50, 50)),
        (200, Pace(500, 550, 100, 50, 50)),
        (1_000, Pace(500, 550, 500, 100, 100)),
        (1_100, Pace(500, 550, 550, 100, 110)),
        (2_000, Pace(950, 1_000, 1_000, 100, 200)),
        (5_000, Pace(2_450, 2_500, 2_500, 125, 500)),
        (8_000, Pace(2_500, 4_000, 4_000, 200, 800)),
        (1_000_000, Pace(2_500, 5_000, 5_000, 5_000, 5_000)),
    ],
)
def test_pace_stretches_with_the_members(members: int, pace: Pace) -> None:
    assert compute_pace(GatewaySettings(), members, 5_000) == pace


@given(st.integers(1, 9_999))
def test_heartbeats_a_second_stay_within_the_limit_while_the_interval_can_grow(
    members: int,
) -> None:
    pace = compute_pace(GatewaySettings(), members, 5_000)
    assert members * 1_000 / pace.interval_ms <= 2_000 * 1.001
    assert pace.interval_ms - pace.park_ms >= 50


def test_park_off_leaves_kafkas_interval() -> None:
    never = Pace(0, 5_000, 5_000, 50, 50)
    assert compute_pace(with_settings(gateway_park_ms=0), 10, 5_000) == never


def test_interval_grows_from_news_to_rest() -> None:
    told = [0]
    for _ in range(7):
        told.append(compute_interval_ms(told[-1], 100, 100, 550))
    assert told[1:] == [100, 200, 300, 400, 500, 550, 550]


@given(st.integers(0, 5_000), st.integers(1, 500), st.integers(1, 500), st.integers(50, 5_000))
def test_interval_never_exceeds_the_rest(previous: int, first: int, step: int, rest: int) -> None:
    assert 0 < compute_interval_ms(previous, first, step, rest) <= rest


@given(st.integers(0, 5_000), st.integers(0, 2_500))
def test_park_ends_before_the_client_gives_up(told: int, park: int) -> None:
    parked = compute_park_ms(told, 50, park)
    assert 0 <= parked <= park
    assert parked == 0 or parked + 50 <= told


@pytest.mark.parametrize(
    ("peername", "host", "peer"),
    [
        (("127.0.0.1", 5), "/127.0.0.1", "127.0.0.1:5"),
        (("::1", 5, 0, 0), "/0:0:0:0:0:0:0:1", "[::1]:5"),
        (("2001:db8::ff", 5, 0, 0), "/2001:db8:0:0:0:0:0:ff", "[2001:db8::ff]:5"),
        (("::ffff:10.1.2.3", 5, 0, 0), "/10.1.2.3", "[::ffff:10.1.2.3]:5"),
        (("fe80::1%eth0", 5, 0, 2), "/fe80:0:0:0:0:0:0:1%eth0", "[fe80::1%eth0]:5"),
        (None, "/127.0.0.1", "?"),
    ],
)
def test_peer_as_java_and_as_the_log_write_it(
    peername: tuple[object, ...] | None, host: str, peer: str
) -> None:
    assert compute_java_host(peername) == host
    assert describe_peer(peername) == peer


def test_refusals_are_counted_and_said_once_a_second(caplog: pytest.LogCaptureFixture) -> None:
    now = [100.0]
    refusals = Refusals(lambda: now[0])
    with caplog.at_level(logging.WARNING):
        for _ in range(500):
            refusals.refuse("tls", "1.2.3.4:5", "why")
        refusals.refuse("http", "1.2.3.4:5", "why")
        assert len(caplog.records) == 2
        now[0] += 1.0
        refusals.refuse("tls", "1.2.3.4:5", "why")
    assert vars(caplog.records[-1])["held_back"] == 499
    assert caplog.records[-1].getMessage() == "kafka_connection_refused"
    assert refusals.counts == {"tls": 501, "http": 1}
