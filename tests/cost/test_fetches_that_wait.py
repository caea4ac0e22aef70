"""Fetches that wait: what they hold counts, and one record that ends them is no stall."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from gateway.apis.topics.k01_fetch import HELD_BYTES
from gateway.settings import GatewaySettings
from gateway.topics.fetch_waits import WAKE_KEYS
from tests.cost.server import CostServer, cost_server
from tests.cost.test_reads import FETCH, FETCH_VERSION, TOPIC, ask, produce
from tests.cost.turns import Counted, check_law

ELEMENTS_MAX: Final = GatewaySettings().gateway_array_elements_max
N: Final = 5_000


def fetch(partitions: int, *, repeats: bool, **fields: Any) -> dict[str, Any]:
    rows = [
        {"partition": 0 if repeats else number, "partition_max_bytes": 1}
        for number in range(partitions)
    ]
    said = {"max_wait": 2**31 - 1, "min_bytes": 1, "max_bytes": 1 << 20, **fields}
    return ask(FETCH, FETCH_VERSION, topics=[{"topic_id": TOPIC, "partitions": rows}], **said)[2]


@contextmanager
def waiting(
    folder: Path, partitions: int, *, repeats: bool = False, fetches: int = 1, **options: Any
) -> Iterator[tuple[CostServer, list[Any]]]:
    """So many fetches wait for all partitions of a topic, each on a connection of its own."""
    with cost_server(folder, **options) as server:
        server.create(1 if repeats else partitions, "foo")
        doors = [server.gateway.connect() for _ in range(fetches)]
        fields = fetch(partitions, repeats=repeats)
        for door in doors:
            server.loop.call_soon(lambda door=door: door.request(FETCH, FETCH_VERSION, 1, **fields))
        watches = server.topics._watches
        live = lambda: sum(not door.connection.closed for door in doors)  # noqa: E731
        server.loop.run_while(lambda: len(watches) < live() or not live())
        yield server, doors


def count_end(server: CostServer, doors: list[Any]) -> Counted:
    """What one record does, until all are answered."""
    key, version, fields = produce()
    return server.loop.count(
        lambda: server.door.request(key, version, 1, **fields),
        lambda: all(door.transport.written for door in doors),
    )


@pytest.mark.parametrize("repeats", [True, False])
def test_a_record_that_ends_a_wait_for_very_many_partitions_is_no_stall(
    tmp_path: Path, repeats: bool
) -> None:
    """Bug: each partition was entered, and taken out again, in one turn."""
    runs = iter(range(10))

    def measure(count: int) -> Counted:
        with waiting(tmp_path / str(next(runs)), count, repeats=repeats) as (server, doors):
            return count_end(server, doors)

    check_law(measure, N, ELEMENTS_MAX)


@pytest.mark.parametrize(("partitions", "n"), [(1, 2 * WAKE_KEYS), (100, 50), (300, 50)])
def test_a_record_that_ends_very_many_waits_is_no_stall(
    tmp_path: Path, partitions: int, n: int
) -> None:
    """Bug: all that waited had a slice in the turn after the append."""
    runs = iter(range(10))

    def measure(count: int) -> Counted:
        folder = tmp_path / str(next(runs))
        with waiting(folder, partitions, fetches=count) as (server, doors):
            return count_end(server, doors)

    check_law(measure, n, GatewaySettings().max_connections)


def test_what_a_fetch_holds_counts_until_it_is_answered(tmp_path: Path) -> None:
    with waiting(tmp_path, 1_000, fetches=3) as (server, doors):
        held = server.gateway.shared.held
        assert held.requests == 3 * 1_000 * HELD_BYTES
        doors[0].connection.connection_lost(None)
        assert held.requests == 2 * 1_000 * HELD_BYTES
        count_end(server, doors[1:])
        assert held.requests == 0


def test_fetches_that_hold_too_much_are_closed_and_the_others_wait_on(tmp_path: Path) -> None:
    """Bug: 60 connections held 4.5 GB in requests that waited."""
    most = GatewaySettings(queued_max_request_bytes=10_900 * HELD_BYTES)
    with waiting(tmp_path, 1_000, fetches=15, gateway=most) as (server, doors):
        live = [door for door in doors if not door.connection.closed]
        assert len(live) == 10
        assert len(server.topics._watches) == 10
        assert server.gateway.shared.held.requests == 10 * 1_000 * HELD_BYTES
        count_end(server, live)
        assert server.gateway.shared.held.requests == 0


def test_a_fetch_that_is_refused_for_its_partitions_is_answered_in_slices(tmp_path: Path) -> None:
    """Bug: 250,000 errors were one turn."""
    runs = iter(range(10))

    def measure(count: int) -> Counted:
        with cost_server(tmp_path / str(next(runs))) as server:
            fields = fetch(count, repeats=True, isolation_level=5)
            counted = server.count(FETCH, FETCH_VERSION, **fields)
            counted.kept = []
            return counted

    check_law(measure, N, ELEMENTS_MAX)
