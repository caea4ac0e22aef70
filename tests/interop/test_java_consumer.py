"""Java's KafkaConsumer 4.3 with ``group.protocol=consumer``, unmodified, on our wire."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kafka.java import Event, JavaProgram, run_java, start_java
from tests.server import MusterServer

JAVA = Path(__file__).parent / "java"
PARTITIONS = 4
RECORDS = 40
NAMES = {f"orders-{number}" for number in range(PARTITIONS)}

pytestmark = pytest.mark.java


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MusterServer]:
    with MusterServer(tmp_path / "data", topics={"orders": PARTITIONS}) as running:
        yield running


def consumer(server: MusterServer, client_id: str) -> JavaProgram:
    return start_java(
        JAVA,
        "ConsumerProgram",
        *("--bootstrap", server.kafka, "--group", "java", "--topics", "orders"),
        *("--client-id", client_id, "--set", "auto.offset.reset=earliest", "--commit"),
    )


def produce(server: MusterServer, records: int, first: int) -> None:
    done = run_java(
        JAVA,
        "ProducerProgram",
        *("--bootstrap", server.kafka, "--topic", "orders"),
        *("--records", str(records), "--first", str(first)),
    )
    assert done.returncode == 0, done.stdout


class Owned:
    """What a program's own events say that it holds."""

    def __init__(self, program: JavaProgram) -> None:
        self._program = program

    def now(self) -> set[str]:
        held: set[str] = set()
        for event in list(self._program.events):
            if event["event"] == "assigned":
                held |= set(event["partitions"])
            elif event["event"] in ("revoked", "lost"):
                held -= set(event["partitions"])
        return held


def has_read(count: int) -> object:
    def check(event: Event) -> bool:
        return bool(event["total"] >= count)

    return check


@pytest.mark.timeout(120)
def test_consumers_share_partitions_commit_and_survive_a_restart(server: MusterServer) -> None:
    produce(server, RECORDS, 0)
    with consumer(server, "one") as one:
        one.wait_for("records", lambda event: event["total"] == RECORDS)
        one.wait_for("committed")
        assert Owned(one).now() == NAMES
        with consumer(server, "two") as two:
            two.wait_for("assigned", lambda event: len(event["partitions"]) == 2)
            revoked = one.wait_for("revoked")
            assert len(revoked["partitions"]) == 2
            assert Owned(one).now() | Owned(two).now() == NAMES
            assert not Owned(one).now() & Owned(two).now()

            server.kill()
            server.start()
            produce(server, PARTITIONS, RECORDS)
            one.wait_for("committed", timeout_s=60)
            two.wait_for("committed", timeout_s=60)
            assert not [e for e in one.events + two.events if e["event"] == "lost"]

            one.send("close")
            one.wait_for("closed")
            two.wait_for("assigned", lambda event: len(event["partitions"]) == 2)
            assert Owned(two).now() == NAMES
            two.send("committed")
            stored = two.wait_for("fetched")["offsets"]
            assert stored == dict.fromkeys(NAMES, RECORDS // PARTITIONS + 1)
            two.send("close")
            two.wait_for("closed")
            assert two.wait() == 0
