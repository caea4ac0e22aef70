"""The marker of a transaction makes all that waits in it visible in one turn, and one write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from coordinator.core.offsets.transactions import TRANSACTION_OFFSETS_MAX
from gateway.apis.offsets import k27_write_txn_markers as markers
from model.commands.offsets import TopicOffsets
from model.commands.transactions import TxnOffsetCommit, WriteTxnMarkers
from model.ids import GroupId, LogPartition, ProducerId, TopicName
from model.log.commit_records import make_offset_columns
from storage.rocks.rocks_opening import open_store
from tests.cost.server import CostServer
from tests.cost.test_reads import ask
from tests.cost.turns import ATOMIC_STEPS_MAX, Counted, check_law
from tests.support.virtual.server import CALLER

N: Final = 500
SEVERAL: Final = 3


@contextmanager
def rocks_server(folder: Path) -> Iterator[CostServer]:
    store = open_store(folder / "store", partitions=1)
    server = CostServer(folder / "topics", store=store)
    try:
        yield server
    finally:
        server.close()
        store.close()


def pend(server: CostServer, producer: int, count: int) -> None:
    """Offsets of one group, each of a producer's own partitions."""
    topic = f"t{producer}"
    server.create(count, topic)
    rows = make_offset_columns((number, 1, -1, "") for number in range(count))
    server.call_all(
        [
            TxnOffsetCommit(
                CALLER,
                GroupId("g"),
                ProducerId(producer),
                0,
                (TopicOffsets(TopicName(topic), None, rows),),
            )
        ]
    )


@pytest.mark.parametrize("committed", [True, False], ids=["commit", "abort"])
def test_a_marker_is_linear_and_fits_into_a_turn(committed: bool, tmp_path: Path) -> None:
    runs = iter(range(100))

    def measure(count: int) -> Counted:
        with rocks_server(tmp_path / str(next(runs))) as server:
            pend(server, 7, count)
            answers: list[object] = []
            marker = WriteTxnMarkers(
                CALLER, LogPartition(0), ProducerId(7), 0, 0, committed=committed
            )
            return server.loop.count(
                lambda: server.runtime.submit(marker, answers.append), lambda: bool(answers)
            )

    check_law(measure, N, TRANSACTION_OFFSETS_MAX, ATOMIC_STEPS_MAX)


def test_markers_of_large_transactions_do_not_share_a_turn(tmp_path: Path) -> None:
    """Of one request: each takes a turn, and each write a part of them."""
    longest = []
    for several in (1, SEVERAL):
        with rocks_server(tmp_path / str(several)) as server:
            for producer in range(several):
                pend(server, producer, TRANSACTION_OFFSETS_MAX // 2)
            rows = [
                {
                    "producer_id": producer,
                    "producer_epoch": 0,
                    "transaction_result": True,
                    "coordinator_epoch": 0,
                    "topics": [{"name": markers.OFFSETS_TOPIC, "partition_indexes": (0,)}],
                }
                for producer in range(several)
            ]
            key, version, fields = ask(markers.KEY, 2, markers=rows)
            longest.append(server.count(key, version, **fields).longest)
    assert longest[1] <= 1.5 * longest[0], longest
