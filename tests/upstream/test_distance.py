"""A slow network, and one that is silent for a while, at either side of Muster."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Final

import pytest

from tests.kafka.releases import KAFKA_2_8_2, KAFKA_3_9_1, KAFKA_4_3_CLASSIC, Release
from tests.upstream.cases import slow
from tests.upstream.clients import CONFLUENT, FRANZ, JAVA
from tests.upstream.distance import CLIENTS, CLUSTER, DistantScene
from tests.upstream.moves import Timeline, settle
from tests.upstream.scene import now_ms

ROUND_TRIP_MS: Final = 300
HELD_S: Final = 90.0
PAUSE_MAX_MS: Final = 20_000
"""A rebalance is some ten round trips of a client, and as many of the sentinel."""
SIDES: Final = (CLIENTS, CLUSTER)
RELEASES: Final = (KAFKA_3_9_1, KAFKA_4_3_CLASSIC, KAFKA_2_8_2)

pytestmark = [pytest.mark.timeout(500), slow]


@pytest.mark.parametrize("far", SIDES)
@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_taken_and_given_back_over_a_slow_network(
    tmp_path: Path, release: Release, far: str, record_property: Any
) -> None:
    with DistantScene(tmp_path, release, far, ROUND_TRIP_MS, per_s=200) as scene:
        for client in (JAVA, CONFLUENT, FRANZ):
            scene.join(client, client)
        settle(scene)
        timeline = Timeline(scene, pause_max_ms=PAUSE_MAX_MS)
        timeline.take()
        assert scene.find_place() == "muster"
        timeline.release()
        assert scene.find_place() == "upstream"
        scene.finish()
        record_property("note", f"{release}, {far} far: {'; '.join(timeline.notes)}")


@pytest.mark.parametrize("far", SIDES)
@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_connections_that_are_half_open(
    tmp_path: Path, release: Release, far: str, record_property: Any
) -> None:
    """Members that are heard no more lose their places, and come back. Two may then believe for a
    moment that they own a partition, as in Kafka; no commit of the former lands."""
    with DistantScene(tmp_path, release, far, 0, per_s=200) as scene:
        for client in (JAVA, CONFLUENT, FRANZ):
            scene.join(client, client)
        settle(scene)
        scene.take()
        settle(scene)
        scene.hold()
        deadline = time.monotonic() + HELD_S
        while time.monotonic() < deadline:
            assert scene.find_place() == "muster"
            time.sleep(1)
        scene.let_go()
        back_ms = now_ms()
        settle(scene)
        works_ms = now_ms() - back_ms
        assert scene.find_place() == "muster"
        scene.wait_until_releasable()
        scene.release()
        settle(scene)
        scene.finish(had_zombies=far == CLIENTS)
        record_property("note", f"{release}, {far} held: all work {works_ms} ms later")
