"""`muster group offsets` shows how far a group is behind."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from coordinator.runtime.authorizer import AllowAll
from coordinator.runtime.runtime import Runtime
from coordinator.service.grpc_server import GrpcServer
from coordinator.service.settings import GrpcSettings
from model.configs.coordinator_settings import CoordinatorSettings
from muster.v1 import types_pb2
from tests.support.memory import MemoryLogStore
from tests.support.service.given_ends import GivenEnds
from tests.unit.cli.admin.test_admin_commands import Server
from tests.unit.cli.admin.test_group_administration import commit
from wording.lag import compute_lag


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    """Partitions 0 to 2 of ``orders`` are committed at 40 to 42; nothing is known of the last."""
    runtime = Runtime(MemoryLogStore(8), CoordinatorSettings())
    await runtime.start()
    await runtime.loaded()
    ends = GivenEnds(orders={0: 100, 1: 41})
    grpc = GrpcServer(runtime, AllowAll(), GrpcSettings(), end_offsets=ends)
    port = await grpc.start("127.0.0.1", 0)
    served = Server(runtime, f"127.0.0.1:{port}")
    await served.run("topic", "create", "orders=3")
    await commit(served, "g", "orders", 0, 1, 2)
    yield served
    await grpc.stop(0)
    await runtime.stop()


async def test_the_table_has_the_columns_of_kafka_s_tool(server: Server) -> None:
    shown = await server.run("group", "offsets", "g")
    assert [line.split()[:6] for line in shown.out.splitlines()] == [
        ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"],
        ["g", "orders", "0", "40", "100", "60"],
        ["g", "orders", "1", "41", "41", "0"],
        ["g", "orders", "2", "42", "-", "-"],
    ]


async def test_programs_read_numbers_or_null(server: Server) -> None:
    shown = await server.run("group", "offsets", "g", "-o", "json")
    rows = json.loads(shown.out)["offsets"]
    assert [(row["offset"], row["end_offset"], row["lag"]) for row in rows] == [
        (40, 100, 60),
        (41, 41, 0),
        (42, None, None),
    ]


@pytest.mark.parametrize(
    ("offset", "end_offset", "lag"),
    [(5, 7, 2), (7, 7, 0), (9, 7, 0), (0, 0, 0), (None, 7, None), (5, None, None)],
)
def test_a_lag_needs_both_and_is_never_negative(
    offset: int | None, end_offset: int | None, lag: int | None
) -> None:
    row = types_pb2.CommittedOffset(partition=0, offset=offset, end_offset=end_offset)
    assert compute_lag(row) == lag
