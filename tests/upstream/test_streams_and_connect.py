"""Kafka Streams and Connect, which go through the relays: a group of either is never in the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.classic_clients import Member
from tests.interop.connect_workers import FILES, Lines, Workers
from tests.interop.test_streams import GROUP, Totals, start_streams
from tests.kafka.releases import KAFKA_4_3_CLASSIC
from tests.upstream.cases import slow
from tests.upstream.scene import Scene

pytestmark = pytest.mark.timeout(400)


@slow
def test_a_streams_application_counts_while_it_is_taken_and_given_back(tmp_path: Path) -> None:
    with Scene(tmp_path, KAFKA_4_3_CLASSIC, per_s=0) as scene:
        scene.create_topic("totals", partitions=1)
        assert scene.server is not None
        totals = Totals(scene.server)
        members: list[Member] = []
        try:
            for name in ("one", "two"):
                members.append(start_streams(scene.server, tmp_path / name, name, threads=1))
            totals.produce_and_wait(members)
            scene.take(GROUP)
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
def test_connect_works_through_the_relays(tmp_path: Path) -> None:
    with Scene(tmp_path, KAFKA_4_3_CLASSIC, per_s=0) as scene:
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
        finally:
            for worker in workers.running:
                worker.program.kill()
