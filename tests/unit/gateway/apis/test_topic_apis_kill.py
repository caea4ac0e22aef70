"""Acknowledged records survive a kill of the server, and offsets continue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.server import MusterServer
from tests.unit.gateway.apis.test_topic_apis_clients import consume

confluent_kafka = pytest.importorskip("confluent_kafka")

DEADLINE_S = 30.0


def test_acknowledged_records_survive_kill(tmp_path: Path) -> None:
    """One idempotent producer keeps producing over two kills; nothing is lost or doubled."""
    delivered: dict[bytes, int] = {}

    def on_delivery(error: Any, message: Any) -> None:
        assert error is None, error
        delivered[message.value()] = message.offset()

    with MusterServer(tmp_path / "data", "--topic", "t=1") as server:
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": server.kafka,
                "enable.idempotence": True,
                "linger.ms": 1,
                "batch.num.messages": 20,
                "reconnect.backoff.max.ms": 100,
            }
        )
        for number in range(3_000):
            producer.produce("t", b"%d" % number, on_delivery=on_delivery)
            producer.poll(0)
            if number in (1_000, 2_000):
                while len(delivered) < number - 500:
                    producer.poll(0.01)
                server.kill()
                server.start()
        assert producer.flush(DEADLINE_S) == 0
        found = consume(server.kafka, "t", 3_000)
    assert sorted(delivered, key=int) == [b"%d" % number for number in range(3_000)]
    assert found == [(number, b"%d" % number) for number in range(3_000)]
    assert all(delivered[value] == offset for offset, value in found)
