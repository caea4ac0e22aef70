"""confluent-kafka (librdkafka) with ``group.instance.id``: a restart moves nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from tests.server import MusterServer
from tests.support.waiting import poll_until

PARTITIONS = 4
WITHIN_S = 30.0
GROUP = "static"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MusterServer]:
    with MusterServer(tmp_path / "data", topics={"orders": PARTITIONS}) as running:
        yield running


class Client:
    """A static consumer and what it holds by its own callbacks."""

    def __init__(self, server: MusterServer, instance_id: str) -> None:
        self.held: set[int] = set()
        self.errors: list[str] = []
        self.consumer = Consumer(
            {
                "bootstrap.servers": server.kafka,
                "group.id": GROUP,
                "group.protocol": "consumer",
                "group.instance.id": instance_id,
                "error_cb": lambda error: self.errors.append(str(error)),
            }
        )
        self.consumer.subscribe(
            ["orders"],
            on_assign=lambda _, partitions: self.held.update(p.partition for p in partitions),
            on_revoke=lambda _, partitions: self.held.difference_update(
                p.partition for p in partitions
            ),
        )

    def poll(self, timeout_s: float) -> None:
        message = self.consumer.poll(timeout_s)
        assert message is None or message.error() is None


def instances(server: MusterServer) -> dict[str, set[int]]:
    """What the server says that each instance holds."""
    admin = AdminClient({"bootstrap.servers": server.kafka})
    described = admin.describe_consumer_groups([GROUP])[GROUP].result(WITHIN_S)
    return {
        member.group_instance_id: {p.partition for p in member.assignment.topic_partitions}
        for member in described.members
    }


@pytest.mark.timeout(240)
def test_a_restart_moves_nothing(server: MusterServer) -> None:
    one, two = Client(server, "i1"), Client(server, "i2")
    poll_until([one, two], lambda: len(one.held) == len(two.held) == 2, "they share")
    held_by_two = set(two.held)
    one_held = set(one.held)
    one.consumer.close()
    assert instances(server) == {"i1": one_held, "i2": held_by_two}, "the place of i1 is kept"
    server.kill()
    server.start()
    again = Client(server, "i1")
    poll_until([again, two], lambda: again.held == one_held, "it has what it had")
    assert two.held == held_by_two
    assert instances(server) == {"i1": one_held, "i2": held_by_two}
    again.consumer.close()
    two.consumer.close()
