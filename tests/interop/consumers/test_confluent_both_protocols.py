"""confluent-kafka (librdkafka) with both protocols in one group, unmodified."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.interop.confluent_client import ConfluentClient, produce
from tests.server import MusterServer
from tests.support.waiting import poll_until

PARTITIONS = 4
RECORDS = 40
NAMES = {f"orders-{number}" for number in range(PARTITIONS)}
CLASSIC = {
    "group.protocol": "classic",
    "session.timeout.ms": 30_000,
    "heartbeat.interval.ms": 200,
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MusterServer]:
    with MusterServer(tmp_path / "data", topics={"orders": PARTITIONS}) as running:
        yield running


def share(clients: list[ConfluentClient], *sizes: int) -> Callable[[], bool]:
    """Whether they hold so many each; nobody ever holds what another does."""

    def is_shared() -> bool:
        held = [name for client in clients for name in client.held]
        assert len(held) == len(set(held)), [client.held for client in clients]
        return [len(client.held) for client in clients] == list(sizes)

    return is_shared


@pytest.mark.timeout(240)
@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_members_of_both_protocols_share_a_group_through_a_restart(
    server: MusterServer, strategy: str
) -> None:
    settings = {**CLASSIC, "partition.assignment.strategy": strategy}
    produce(server, range(RECORDS))
    new = ConfluentClient(server, "new")
    poll_until([new], lambda: len(new.values) == RECORDS, "it reads all")
    old = ConfluentClient(server, "old", settings=settings)
    both = [new, old]
    poll_until(both, share(both, 2, 2), "they share")
    older = ConfluentClient(server, "older", settings=settings)
    three = [*both, older]
    poll_until(
        three, lambda: share(three)() or bool(old.held and older.held and new.held), "all share"
    )
    poll_until(three, lambda: set().union(*(each.held for each in three)) == NAMES, "all is held")

    server.kill()
    server.start()
    produce(server, range(RECORDS, RECORDS + PARTITIONS))
    poll_until(
        three, lambda: sum(len(each.values) for each in three) == RECORDS + PARTITIONS, "they go on"
    )
    read = [value for each in three for value in each.values]
    assert sorted(read) == list(range(RECORDS + PARTITIONS))
    assert not [each.lost for each in three if each.lost]

    older.consumer.close()
    poll_until(both, share(both, 2, 2), "two share again")
    old.consumer.close()
    poll_until([new], lambda: new.held == NAMES, "one takes over")
    assert new.committed("orders", PARTITIONS) == [RECORDS // PARTITIONS + 1] * PARTITIONS
    new.consumer.close()
