"""Offsets of a consumer group that works are reset: what confluent-kafka (librdkafka) then reads.

One server process, two consumers that commit each record, and a producer that goes on.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Message

from tests.interop.confluent_client import ConfluentClient, compute_names, produce
from tests.server import MusterServer
from tests.support.cli.invoking import Result, invoke_app
from tests.support.waiting import poll_until

PARTITIONS: Final = 4
FIRST: Final = 200
"""Records before the reset, 50 in each partition."""
NEW_OFFSET: Final = 10
RESET: Final = (0, 1)
"""The partitions that are reset; one consumer owns 0 and the other 1."""


class Reader(ConfluentClient):
    """Writes down, in the ledger of all readers, which record it has read."""

    def __init__(self, server: MusterServer, name: str, ledger: list[tuple[str, int, int]]) -> None:
        self.name = name
        self.ledger = ledger
        self.given: list[set[str]] = []
        self.taken: list[set[str]] = []
        super().__init__(server, name, group="traffic")

    def subscribe(self) -> None:
        self.consumer.subscribe(
            self._topics,
            on_assign=lambda _, changed: self._note(self.given, compute_names(changed), True),
            on_revoke=lambda _, changed: self._note(self.taken, compute_names(changed), False),
            on_lost=lambda _, changed: self.lost.extend(compute_names(changed)),
        )

    def _note(self, where: list[set[str]], names: set[str], is_given: bool) -> None:
        if names:
            where.append(names)
        self.held = self.held | names if is_given else self.held - names

    def poll(self, wait_s: float = 0.02) -> None:
        message = self.consumer.poll(wait_s)
        if message is None:
            return
        if message.error() is not None:
            self.errors.append(str(message.error()))
            return
        self._read(message)

    def _read(self, message: Message) -> None:
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        self.ledger.append((self.name, partition, offset))
        self.consumer.commit(message=message, asynchronous=False)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MusterServer]:
    with MusterServer(tmp_path / "data", topics={"orders": PARTITIONS}) as running:
        yield running


def reset(server: MusterServer, timeout: str = "30s") -> Result:
    wanted = f"orders:{','.join(map(str, RESET))}"
    to = ("--to-offset", str(NEW_OFFSET), "--yes", "-o", "csv", "--timeout", timeout)
    return invoke_app("group", "reset", "traffic", "--topic", wanted, *to, "--server", server.grpc)


class Scene:
    """Two readers, and records without end."""

    def __init__(self, server: MusterServer) -> None:
        self.server = server
        self.ledger: list[tuple[str, int, int]] = []
        produce(server, range(FIRST))
        self.produced = FIRST
        self.readers = [Reader(server, name, self.ledger) for name in ("one", "two")]
        poll_until(self.readers, lambda: all(len(each.held) == 2 for each in self.readers), "share")
        poll_until(self.readers, lambda: len(self.ledger) >= FIRST, "all are read")

    def go_on(self) -> None:
        """One record more in each partition, and a poll of each reader."""
        produce(self.server, range(self.produced, self.produced + PARTITIONS))
        self.produced += PARTITIONS
        for reader in self.readers:
            reader.poll()

    def close(self) -> None:
        for reader in self.readers:
            reader.consumer.close()

    def check(self) -> None:
        """Read everything; then see who has read what, partition by partition."""
        self.go_on()
        end = self.produced // PARTITIONS

        def are_at_the_end() -> bool:
            last = {number: offset for _, number, offset in self.ledger}
            return all(self.count(number, NEW_OFFSET) == 2 for number in RESET) and all(
                last[number] == end - 1 for number in range(PARTITIONS)
            )

        poll_until(self.readers, are_at_the_end, "they read to the end")
        for number in range(PARTITIONS):
            rows = [(name, offset) for name, at, offset in self.ledger if at == number]
            offsets = [offset for _, offset in rows]
            if number not in RESET:
                assert offsets == list(range(end)), f"{number}: each once, in order"
                continue
            turn = 1 + next(
                index for index, (a, b) in enumerate(itertools.pairwise(offsets)) if b <= a
            )
            assert offsets[:turn] == list(range(turn)), f"{number}: once, up to the reset"
            assert offsets[turn:] == list(range(NEW_OFFSET, end)), f"{number}: none is lost"
            assert len({name for name, _ in rows[turn:]}) == 1, "by one member"

    def count(self, partition: int, offset: int) -> int:
        return sum(row[1:] == (partition, offset) for row in self.ledger)


@pytest.mark.timeout(240)
def test_each_record_after_the_new_offset_is_read_once_by_one_member(server: MusterServer) -> None:
    scene = Scene(server)
    held = [set(reader.held) for reader in scene.readers]
    given = [len(reader.given) for reader in scene.readers]
    with ThreadPoolExecutor(1) as thread:
        done = thread.submit(reset, server)
        while not done.done():
            scene.go_on()
    assert done.result().exit_code == 0, done.result()
    poll_until(scene.readers, lambda: [r.held for r in scene.readers] == held, "they have all back")
    for _ in range(5):
        scene.go_on()
    scene.check()
    again = {f"orders-{number}" for number in RESET}
    for reader, before, known in zip(scene.readers, held, given, strict=True):
        assert reader.given[known:] == [before & again], "only what is reset is given again"
        assert reader.taken[-1] == before & again
        assert not reader.lost
    described = invoke_app("group", "describe", "traffic", "--server", server.grpc)
    assert "Stable" in described.out
    scene.close()


@pytest.mark.timeout(240)
def test_a_server_that_is_killed_after_the_beginning_goes_on_with_it(server: MusterServer) -> None:
    scene = Scene(server)
    # Nobody polls, so nobody gives up before the kill.
    late = reset(server, "300ms")
    assert (late.exit_code, "goes on" in late.error) == (5, True), late
    server.kill()
    server.start()
    held = {f"orders-{number}" for number in range(PARTITIONS)}
    poll_until(
        scene.readers,
        lambda: all(scene.count(number, NEW_OFFSET) == 2 for number in RESET),
        "they read again",
    )
    poll_until(
        scene.readers, lambda: scene.readers[0].held | scene.readers[1].held == held, "all is held"
    )
    scene.check()
    scene.close()
