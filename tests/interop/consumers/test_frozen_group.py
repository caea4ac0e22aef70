"""A frozen group as consumers of confluent-kafka (librdkafka) see it, on one server process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.interop.confluent_client import ConfluentClient, produce
from tests.server import MusterServer
from tests.support.cli.invoking import Result, invoke_app
from tests.support.waiting import poll_until

PARTITIONS: Final = 4
ALL: Final = {f"orders-{number}" for number in range(PARTITIONS)}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MusterServer]:
    with MusterServer(tmp_path / "data", topics={"orders": PARTITIONS}) as running:
        yield running


def run(server: MusterServer, *arguments: str) -> Result:
    return invoke_app("group", *arguments, "--server", server.grpc)


def compute_clients(server: MusterServer) -> dict[str, int]:
    """The epoch of each member, by client id, as the server has them."""
    described = json.loads(run(server, "describe", "confluent", "-o", "json").out)
    return {
        member["client_id"]: member.get("member_epoch", 0)
        for member in described.get("members", ())
    }


@pytest.mark.timeout(240)
def test_nothing_moves_before_the_resume_through_joins_a_kill_and_a_leave(
    server: MusterServer,
) -> None:
    one = ConfluentClient(server, "one")
    poll_until([one], lambda: one.held == ALL, "it has all")
    frozen = run(server, "freeze", "confluent", "--yes")
    assert frozen.exit_code == 0, frozen
    two = ConfluentClient(server, "two")
    poll_until([one, two], lambda: compute_clients(server).get("two", 0) > 0, "two joins")
    server.kill()
    server.start()
    three = ConfluentClient(server, "three")
    clients = [one, two, three]
    poll_until(clients, lambda: compute_clients(server).get("three", 0) > 0, "three joins")
    produce(server, range(40))
    poll_until(clients, lambda: len(one.values) == 40, "one reads on")
    assert (one.held, two.held, three.held) == (ALL, set(), set())
    assert [one.lost, two.values, three.values] == [[], [], []]

    one.consumer.close()
    rest = [two, three]
    poll_until(rest, lambda: set(compute_clients(server)) == {"two", "three"}, "one is gone")
    produce(server, range(40, 80))
    described = run(server, "describe", "confluent").out
    assert "FROZEN since" in described.splitlines()[0]
    previewed = json.loads(run(server, "resume", "confluent", "--dry-run", "-o", "json").out)
    assert [move["from"] for move in previewed["moves"]] == [None] * PARTITIONS
    assert (two.held, three.held) == (set(), set())

    resumed = run(server, "resume", "confluent", "--yes")
    assert resumed.exit_code == 0, resumed
    poll_until(rest, lambda: two.held | three.held == ALL, "they share all")
    poll_until(rest, lambda: len(two.values) + len(three.values) == 40, "nothing is left")
    assert sorted(two.values + three.values) == list(range(40, 80)), "each once"
    assert len(two.held) == len(three.held) == PARTITIONS // 2
    for client in rest:
        assert not client.lost
        client.consumer.close()
