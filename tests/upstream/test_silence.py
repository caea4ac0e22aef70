"""The cluster cannot be reached for a minute: no group is given up, and nothing is lost."""

from __future__ import annotations

import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest

from tests.kafka.releases import KAFKA_2_8_2, KAFKA_3_9_1, KAFKA_4_3_CLASSIC, Release
from tests.upstream.cases import slow
from tests.upstream.clients import CONFLUENT, FRANZ, JAVA
from tests.upstream.moves import settle
from tests.upstream.scene import Scene, now_ms

SILENCE_S: Final = 60.0
RELEASES: Final = (KAFKA_4_3_CLASSIC, KAFKA_3_9_1, KAFKA_2_8_2)

pytestmark = [pytest.mark.timeout(400), slow]


@pytest.mark.parametrize("end", ["silence", "kill"])
@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_the_cluster_is_gone_for_a_minute(
    tmp_path: Path, release: Release, end: str, record_property: Any
) -> None:
    """Its connections stay open and nothing comes, or they are refused. Members keep what they
    have: they are told to repeat their commits, and all else that they ask here is answered."""
    with Scene(tmp_path, release) as scene:
        for client in (JAVA, CONFLUENT, FRANZ):
            scene.join(client, client)
        settle(scene)
        scene.take()
        settle(scene)
        (broker,) = scene.cluster.brokers
        began_ms = now_ms()
        if end == "silence":
            scene.cluster.signal(broker, signal.SIGSTOP)
        else:
            scene.cluster.kill(broker)
        deadline = time.monotonic() + SILENCE_S
        while time.monotonic() < deadline:
            assert scene.find_place() == "muster"
            time.sleep(1)
        if end == "silence":
            scene.cluster.signal(broker, signal.SIGCONT)
        else:
            scene.cluster.start_broker(broker)
        back_ms = now_ms()
        settle(scene)
        settled_ms = now_ms()
        assert scene.find_place() == "muster"
        told = Counter(
            f"{entry.member}: {entry.event.get('error')}"
            for entry in scene.ledger.entries
            if entry.kind == "commit-failed" and entry.at_ms >= began_ms
        )
        changes = scene.ledger.count("assigned", began_ms)
        assert not changes
        scene.wait_until_releasable()
        scene.release()
        settle(scene)
        scene.finish()
        record_property(
            "note",
            f"{release}, {end}: all work {settled_ms - back_ms} ms after it is back, as before; "
            f"commits heard {dict(told) or 'nothing'}",
        )
