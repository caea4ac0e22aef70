"""Records are copied exactly once, by transactions with offsets, while their group moves."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.interop.classic_clients import Member
from tests.kafka.jars import BROKER, KAFKA_2_8, KAFKA_3_9
from tests.kafka.java import JavaProgram, java_command
from tests.kafka.release import LOG4J_1
from tests.kafka.releases import KAFKA_2_8_2, KAFKA_3_9_1, KAFKA_4_3_CLASSIC
from tests.support.waiting import wait_until
from tests.upstream.cases import ALL
from tests.upstream.scene import GROUP, TOPIC, WITHIN_S, Scene

COPIES = "copies"
QUICK = [(KAFKA_3_9_1, BROKER)]
EVERY = [
    (release, jars)
    for release in (KAFKA_4_3_CLASSIC, KAFKA_3_9_1, KAFKA_2_8_2)
    for jars in (BROKER, KAFKA_3_9, KAFKA_2_8)
]

pytestmark = pytest.mark.timeout(300)


class Copies:
    """The values of the copies that were committed, each with how often it is there."""

    def __init__(self, scene: Scene) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": scene.cluster.bootstrap,
                "group.id": "reader",
                "isolation.level": "read_committed",
                "log_level": 0,
            }
        )
        partitions = range(scene.partitions)
        self._consumer.assign([TopicPartition(COPIES, number, 0) for number in partitions])
        self.counts: Counter[int] = Counter()

    def read(self) -> None:
        for message in self._consumer.consume(num_messages=1_000, timeout=0.1):
            if message.error() is None:
                self.counts[int(message.value() or b"-1")] += 1

    def close(self) -> None:
        self._consumer.close()


def start_copying(scene: Scene, name: str, jars: str) -> Member:
    words = [scene.bootstrap, GROUP, name, TOPIC, COPIES]
    command = java_command(
        Path(__file__).parent / "java", "CopyProgram", words, (jars,), ("-Xmx128m", LOG4J_1)
    )
    member = Member(name, "copy", JavaProgram(command))
    scene.members.append(member)
    return member


def wait_until_copied(scene: Scene, members: list[Member]) -> None:
    """Until each of them has copied something since."""
    before = [member.count("copied") for member in members]
    scene.wait_for(
        lambda: all(m.count("copied") > n for m, n in zip(members, before, strict=True)),
        "all members copy",
    )


@pytest.mark.parametrize(("release", "jars"), EVERY if ALL else QUICK, ids=str)
def test_each_record_is_copied_once(tmp_path: Path, release: object, jars: str) -> None:
    with Scene(tmp_path, release, per_s=200) as scene:  # type: ignore[arg-type]
        scene.create_topic(COPIES)
        members = [start_copying(scene, name, jars) for name in ("one", "two")]
        scene.wait_until_shared()
        wait_until_copied(scene, members)
        scene.take()
        scene.wait_until_shared()
        wait_until_copied(scene, members)
        assert scene.find_place() == "muster"

        assert scene.server is not None
        scene.server.kill()
        scene.server.start()
        scene.wait_until_shared()
        wait_until_copied(scene, members)

        # Its transaction ends when its successor begins; its partitions come to the other before.
        scene.kill(members[0])
        members[0] = start_copying(scene, "one", jars)
        scene.wait_until_shared()
        wait_until_copied(scene, members)
        scene.release()
        scene.wait_until_shared()
        wait_until_copied(scene, members)
        scene.traffic.stop()

        copies = Copies(scene)
        produced = sum(scene.traffic.produced.values())
        wait_until(
            lambda: len(copies.counts) == produced,
            lambda: f"{len(copies.counts)} of {produced} are copied",
            WITHIN_S,
            between=copies.read,
        )
        for member in members:
            member.close()
        deadline = time.monotonic() + 1
        while time.monotonic() < deadline:
            copies.read()
        copies.close()
        assert copies.counts == Counter(range(produced))
        assert scene.fetch_committed() == scene.traffic.produced
        assert not scene.ledger.find_double_owners()
