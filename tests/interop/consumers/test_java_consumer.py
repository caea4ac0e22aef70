"""Java's KafkaConsumer 4.3 with ``group.protocol=consumer``, unmodified, on our wire."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.interop import confluent_client
from tests.interop.confluent_client import WITHIN_S, make_topic
from tests.kafka.java import Event, JavaProgram, run_java, start_java
from tests.server import MusterServer
from tests.support.cli.invoking import invoke_app
from tests.support.waiting import wait_until

JAVA = Path(__file__).parents[1] / "java"
PARTITIONS = 4
RECORDS = 40
NAMES = {f"orders-{number}" for number in range(PARTITIONS)}

pytestmark = pytest.mark.java


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MusterServer]:
    topics = {"orders": PARTITIONS, "payments": PARTITIONS}
    with MusterServer(tmp_path / "data", topics=topics) as running:
        yield running


def consumer(server: MusterServer, client_id: str, *options: str) -> JavaProgram:
    return start_java(
        JAVA,
        "ConsumerProgram",
        *("--bootstrap", server.kafka, "--group", "java", "--topics", "orders"),
        *("--client-id", client_id, "--set", "auto.offset.reset=earliest", "--commit"),
        *options,
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


@pytest.mark.timeout(240)
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


@pytest.mark.timeout(240)
def test_offsets_of_a_consumer_that_works_are_reset(server: MusterServer) -> None:
    """It gives the partition up, gets it again, and does not go on where it was."""
    produce(server, RECORDS, 0)
    with consumer(server, "one") as one:
        one.wait_for("records", lambda event: event["total"] == RECORDS)
        one.wait_for("committed")
        seek = ("group", "seek", "java", "orders:0", "--to", "4", "--yes")
        done = invoke_app(*seek, "--server", server.grpc)
        assert done.exit_code == 0, done
        assert one.wait_for("revoked")["partitions"] == ["orders-0"]
        one.wait_for("assigned", lambda event: event["partitions"] == ["orders-0"])
        again = RECORDS // PARTITIONS - 4
        one.wait_for("records", lambda event: event["total"] == RECORDS + again)
        assert Owned(one).now() == NAMES
        one.send("close")
        one.wait_for("closed")
        assert one.wait() == 0


def instance(server: MusterServer, name: str) -> JavaProgram:
    """A static member that subscribes by pattern."""
    return start_java(
        JAVA,
        "ConsumerProgram",
        *("--bootstrap", server.kafka, "--group", "static", "--pattern", "orders.*"),
        *("--instance-id", name, "--client-id", name, "--commit"),
        *("--set", "metadata.max.age.ms=1000"),
    )


def wait_until_held(programs: Sequence[JavaProgram], wanted: set[str], each: int) -> None:
    """Until the programs together hold what is wanted, and each so many."""

    def look() -> list[set[str]]:
        return [Owned(program).now() for program in programs]

    def is_shared() -> bool:
        held = look()
        return set().union(*held) == wanted and all(len(names) == each for names in held)

    wait_until(is_shared, lambda: f"each holds {each} of {wanted}: {look()}", WITHIN_S)


@pytest.mark.timeout(240)
@pytest.mark.long
def test_static_members_with_a_pattern_keep_their_partitions_while_away(
    server: MusterServer,
) -> None:
    confluent_client.produce(server, range(RECORDS))
    confluent_client.produce(server, range(RECORDS), "payments")
    with ExitStack() as programs:
        one = programs.enter_context(instance(server, "one"))
        # Alone at first, so that the other one never had what this one keeps.
        wait_until_held([one], NAMES, each=4)
        two = programs.enter_context(instance(server, "two"))
        wait_until_held([one, two], NAMES, each=2)
        holding = Owned(one).now()
        # The other may have read all there was before it had to share.
        confluent_client.produce(server, range(RECORDS, 2 * RECORDS))
        one.wait_for("committed")
        one.send("close")
        one.wait_for("closed")
        server.kill()
        server.start()
        with instance(server, "one") as returned, instance(server, "two") as intruder:
            back = returned.wait_for("assigned", lambda event: bool(event["partitions"]))
            kept = "an instance that is away keeps its partitions"
            assert set(back["partitions"]) == holding, kept
            refused = intruder.wait_for("failed")
            assert refused["error"] == "UnreleasedInstanceIdException"
            make_topic(server, "orders-new")
            both = [returned, two]
            wait_until_held(both, NAMES | {f"orders-new-{n}" for n in range(PARTITIONS)}, each=4)
            confluent_client.produce(server, range(2 * RECORDS, 2 * RECORDS + PARTITIONS))
            for program in both:
                program.wait_for("committed")
                program.send("close")
                assert program.wait() == 0
            seen = one.events + two.events + returned.events
            assert not [event for event in seen if event["event"] in ("lost", "commit-failed")]
            names = [name for event in two.events for name in event.get("last", {})]
            assert set(names) & holding == set()
