"""Kafka Streams and Connect, through the relays and taken over: Streams' group, and that of a sink
connector, are classic groups as any other; that of Connect's workers stays in the cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.classic_clients import Member
from tests.interop.connect_workers import FILES, Lines, Workers
from tests.interop.test_streams import GROUP, Totals, start_streams
from tests.kafka.releases import KAFKA_2_8_2, KAFKA_3_9_1, KAFKA_4_3_CLASSIC, Release
from tests.upstream.cases import slow
from tests.upstream.scene import Scene

RELEASES = (KAFKA_4_3_CLASSIC, KAFKA_3_9_1, KAFKA_2_8_2)
SINK_GROUP = "connect-writes"

pytestmark = pytest.mark.timeout(400)


@slow
@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_a_streams_application_counts_while_it_is_taken_and_given_back(
    tmp_path: Path, release: Release
) -> None:
    with Scene(tmp_path, release, per_s=0) as scene:
        scene.create_topic("totals", partitions=1)
        assert scene.server is not None
        totals = Totals(scene.server)
        members: list[Member] = []
        try:
            for name in ("one", "two"):
                members.append(start_streams(scene.server, tmp_path / name, name, threads=1))
            totals.produce_and_wait(members)
            scene.take(GROUP)
            assert scene.find_place(GROUP) == "muster"
            totals.produce_and_wait(members)
            scene.server.kill()
            scene.server.start()
            totals.produce_and_wait(members)
            scene.release(GROUP)
            totals.produce_and_wait(members)
            for member in members:
                member.close()
        finally:
            totals.close()
            for member in members:
                member.kill()


@slow
@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_connect_works_and_its_sink_is_taken_and_given_back(
    tmp_path: Path, release: Release
) -> None:
    with Scene(tmp_path, release, per_s=0) as scene:
        scene.create_topic("lines", partitions=2)
        assert scene.server is not None
        workers = Workers(scene.server, tmp_path)
        lines = Lines(tmp_path)
        try:
            workers.start()
            workers.start()
            workers.create(
                "reads",
                {
                    "connector.class": f"{FILES}SourceConnector",
                    "file": str(lines.source),
                    "topic": "lines",
                },
            )
            workers.create(
                "writes",
                {
                    "connector.class": f"{FILES}SinkConnector",
                    "file": str(lines.sink),
                    "topics": "lines",
                },
            )
            lines.write_and_wait(workers)
            refused = scene.run_muster("upstream", "take", "workers", "--yes")
            assert refused.returncode != 0, refused
            lines.write_and_wait(workers)

            scene.take(SINK_GROUP)
            assert scene.find_place(SINK_GROUP) == "muster"
            lines.write_and_wait(workers)
            scene.server.kill()
            scene.server.start()
            lines.write_and_wait(workers)
            scene.release(SINK_GROUP)
            assert scene.find_place(SINK_GROUP) == "upstream"
            lines.write_and_wait(workers)
        finally:
            for worker in workers.running:
                worker.program.kill()
