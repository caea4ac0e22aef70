"""Patterns of stock clients, beside those of static members: refused, with names, and given up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.confluent_client import ConfluentClient, make_topic
from tests.kafka.java import JavaProgram, start_java
from tests.server import MusterServer
from tests.support.waiting import poll_until

JAVA = Path(__file__).parents[1] / "java"
ORDERS = {f"orders-{number}" for number in range(4)}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MusterServer]:
    with MusterServer(tmp_path / "data", topics={"orders": 4, "payments": 1}) as running:
        yield running


def java_consumer(server: MusterServer, pattern: str) -> JavaProgram:
    return start_java(
        JAVA,
        "ConsumerProgram",
        *("--bootstrap", server.kafka, "--group", "java", "--pattern", pattern),
    )


@pytest.mark.java
@pytest.mark.timeout(240)
def test_java_is_told_of_a_pattern_that_is_none_and_goes_over_to_names(
    server: MusterServer,
) -> None:
    with java_consumer(server, "(orders|later)") as one:
        one.wait_for("assigned", lambda event: set(event["partitions"]) == ORDERS)
        with java_consumer(server, "(unclosed") as refused:
            assert "missing closing )" in str(refused.wait_for("failed"))
        one.send("unsubscribe")
        one.wait_for("unsubscribed")
        one.send("subscribe payments")
        one.wait_for("assigned", lambda event: event["partitions"] == ["payments-0"])
        one.send("close")
        one.wait_for("closed")


@pytest.mark.timeout(60)
def test_librdkafka_has_names_and_a_pattern_in_one_subscription(server: MusterServer) -> None:
    one = ConfluentClient(server, "one", topics=("payments", "^ord.*"))
    poll_until([one], lambda: one.held == ORDERS | {"payments-0"}, "both")
    make_topic(server, "ordinary")
    poll_until([one], lambda: any(name.startswith("ordinary") for name in one.held), "the new one")
    assert not one.errors
    one.consumer.close()
