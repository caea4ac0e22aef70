"""How long requests took, by API."""

from __future__ import annotations

from gateway.request_times import REPEATS_SAMPLED
from tests.support.gateway.wire_door import Gateway
from tests.support.wire.frames import frame, make_request
from tests.unit.gateway.connection.test_wire_connection import DurableCommits

API_VERSIONS = 18
COMMIT, HEARTBEAT = 8, 68


class AtOnce:
    """Answers each frame from memory."""

    def serve(self, client: object, data: bytes, now: float) -> bytes | None:
        return b"\0\0\0\5" + data[8:12] + b"\0"


def count(gateway: Gateway, key: int) -> int:
    times = gateway.shared.times.by_key.get(key)
    return 0 if times is None else sum(times.counts)


def test_a_decoded_request_is_timed_until_its_response() -> None:
    gateway = Gateway()
    door = gateway.connect()
    door.send(frame(API_VERSIONS, 0, 1, make_request(API_VERSIONS, 0)))
    assert count(gateway, API_VERSIONS) == 1
    assert gateway.shared.times.by_key[API_VERSIONS].sum_s >= 0


def test_one_of_many_repeats_stands_for_all() -> None:
    gateway = Gateway()
    door = gateway.connect()
    door.connection.repeats[HEARTBEAT] = AtOnce()
    beat = frame(HEARTBEAT, 1, 7, b"")
    for _ in range(REPEATS_SAMPLED - 1):
        door.send(beat)
    assert count(gateway, HEARTBEAT) == 0
    for _ in range(REPEATS_SAMPLED + 1):
        door.send(beat)
    assert count(gateway, HEARTBEAT) == 2 * REPEATS_SAMPLED


def test_a_commit_is_timed_until_it_is_durable() -> None:
    gateway = Gateway()
    door = gateway.connect()
    door.connection.repeats[COMMIT] = DurableCommits()
    for number in range(REPEATS_SAMPLED):
        door.send(frame(COMMIT, 9, number, b""))
        door.connection.send_answered()
    assert count(gateway, COMMIT) == REPEATS_SAMPLED
    assert count(gateway, HEARTBEAT) == 0
