"""A Kafka and a Muster with the same settings, for as long as a run lasts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.differential.classic.classic_side import MAX_SIZE
from tests.differential.runner import Peers
from tests.differential.sides import admin
from tests.differential.sides.admin import ANSWERED_IN_S
from tests.differential.sides.topics import SHARED
from tests.kafka.broker import KafkaBroker, Setting
from tests.server import MusterServer
from tests.support.wire.connection import Connection

SETTINGS: Final = {
    "group.consumer.assignment.interval.ms": 0,
    "group.consumer.assignors": "range,uniform",
    "group.consumer.max.size": 4,
    "group.consumer.heartbeat.interval.ms": 100,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.min.session.timeout.ms": 200,
    "group.consumer.max.session.timeout.ms": 1_800_000,
    "group.consumer.session.timeout.ms": 900_000,
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 100,
    "group.max.size": MAX_SIZE,
    # Groups without members and offsets go with a check, and each side has its own times for it.
    "offsets.retention.check.interval.ms": 86_400_000,
    "offsets.topic.num.partitions": 8,
}
"""Sessions are long, so that a slow machine ends none; those that are to end are made short."""

KAFKAS: Final = {
    "auto.create.topics.enable": False,
    "log.index.size.max.bytes": 4_096,
    "log.segment.bytes": 1_048_576,
    "group.coordinator.threads": 2,
    # Who coordinates the transactions is not asked: they are not begun there.
    "transaction.partition.verification.enable": False,
    # A broker that is starved of processor time is not taken for one that is gone.
    "broker.session.timeout.ms": 900_000,
}


@contextmanager
def run_peers(
    folder: Path,
    kafkas: Mapping[str, Setting] | None = None,
    musters: Mapping[str, Setting] | None = None,
) -> Iterator[Peers]:
    """Start both, each with more settings of its own; they end with the block."""
    own = {"gateway.park.ms": 0, "offsets.transactional.commits": "all", **(musters or {})}
    muster = MusterServer(folder / "data", settings=SETTINGS | own)
    with KafkaBroker(SETTINGS | KAFKAS | dict(kafkas or {})) as broker, muster:
        yield Peers(broker.bootstrap, muster.kafka)


async def prepare(peers: Peers) -> None:
    """Both are ready for groups, and have the topics that all sequences share."""
    for address in (peers.kafka, peers.muster):
        connection = await Connection.open(address, "differential", ANSWERED_IN_S)
        await admin.wait_for_coordinator(connection)
        for name, partitions in SHARED.items():
            assert not await admin.create_topic(connection, name, partitions)
        connection.close()
