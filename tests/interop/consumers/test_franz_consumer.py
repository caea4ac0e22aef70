"""franz-go with its consumer groups of KIP-848, unmodified, on our wire."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.confluent_client import ConfluentClient, make_topic, produce
from tests.interop.consumers.franz import FranzProgram, build_franz, start_franz
from tests.interop.consumers.test_java_consumer import Owned, wait_until_held
from tests.kafka.prerequisites import MissingPrerequisite
from tests.server import MusterServer
from tests.support.waiting import poll_until

PARTITIONS = 4
RECORDS = 40
NAMES = {f"orders-{number}" for number in range(PARTITIONS)}


@pytest.fixture(scope="module", autouse=True)
def program() -> Path:
    return build_franz()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MusterServer]:
    topics = {"orders": PARTITIONS, "payments": PARTITIONS}
    with MusterServer(tmp_path / "data", topics=topics) as running:
        yield running


def member(server: MusterServer, client_id: str, *options: str) -> FranzProgram:
    return start_franz("--bootstrap", server.kafka, "--client-id", client_id, *options)


def shares(server: MusterServer, client_id: str) -> FranzProgram:
    return member(server, client_id, "--group", "shared", "--topics", "orders")


def matches(server: MusterServer) -> FranzProgram:
    """A static member that subscribes by pattern, alone in its group.

    It does not leave: franz-go 1.22 does so without its instance id, which Kafka refuses as well.
    """
    options = ("--group", "matching", "--pattern", "^orders.*", "--instance-id", "pod")
    return member(server, "pod", *options)


def count_read(*programs: FranzProgram) -> int:
    """How many records they have read, and committed."""
    return sum(
        event["count"]
        for program in programs
        for event in list(program.events)
        if event["event"] == "committed"
    )


def check_no_complaint(*programs: FranzProgram) -> None:
    bad = ("lost", "commit-failed", "fetch-failed", "failed")
    found = [event for program in programs for event in program.events if event["event"] in bad]
    assert not found


@pytest.mark.timeout(240)
def test_members_share_with_another_client_commit_and_survive_restarts(
    server: MusterServer,
) -> None:
    other = ConfluentClient(server, "other", group="shared")
    with shares(server, "one") as one, shares(server, "two") as two, matches(server) as pod:
        held = (lambda: Owned(one).now(), lambda: Owned(two).now(), lambda: other.held)

        def read_until(count: int) -> None:
            poll_until(
                [other],
                lambda: count_read(one, two) + len(other.values) == count == count_read(pod),
                f"all read {count}",
            )

        poll_until([other], lambda: sorted(len(each()) for each in held) == [1, 1, 2], "they share")
        assert set().union(*(each() for each in held)) == NAMES
        produce(server, range(RECORDS))
        read_until(RECORDS)
        server.terminate()
        server.start()
        produce(server, range(RECORDS, RECORDS + PARTITIONS))
        read_until(RECORDS + PARTITIONS)
        server.kill()
        server.start()
        produce(server, range(RECORDS + PARTITIONS, RECORDS + 2 * PARTITIONS))
        read_until(RECORDS + 2 * PARTITIONS)
        assert Owned(pod).now() == NAMES, "what the pattern matches alone"

        other.consumer.close()
        two.send("close")
        make_topic(server, "orders-new")
        two.wait_for("closed")
        wait_until_held([one], NAMES, each=4)
        wait_until_held([pod], NAMES | {f"orders-new-{n}" for n in range(PARTITIONS)}, each=8)
        one.send("committed")
        expected = dict.fromkeys(NAMES, RECORDS // PARTITIONS + 2)
        assert one.wait_for("fetched")["offsets"] == expected
        one.send("close")
        assert one.wait() == 0
        check_no_complaint(one, two, pod)
        assert not other.lost


def test_without_go_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingPrerequisite, match=r"install golang-go$"):
        build_franz(tmp_path)
