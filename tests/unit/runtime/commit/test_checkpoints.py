"""Checkpoints come by time, by keys and by bytes, in slices, and hold nobody up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from coordinator.runtime.commit import checkpoints
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import LogPartition
from storage.log_store import StoreFailed
from tests.support.memory import MemoryLogStore
from tests.support.virtual.server import VirtualServer

PARTITION = LogPartition(0)
SETTINGS = CoordinatorSettings(offsets_expiry="off", log_checkpoint_interval_ms=5_000)


def make_server(settings: CoordinatorSettings = SETTINGS) -> VirtualServer:
    server = VirtualServer({"foo": 64}, settings=settings, partitions=1)
    server.advance(10_000)
    return server


def commit(server: VirtualServer, offset: int, partitions: int = 1, group: str = "g") -> None:
    server.ask(
        server.commit_command(group, "", None, "foo", dict.fromkeys(range(partitions), offset))
    )


def read_offsets(server: VirtualServer, partitions: int) -> dict[int, int]:
    return {number: server.fetch("g", "foo", number) for number in range(partitions)}


def is_settled(server: VirtualServer) -> bool:
    end = server.store.next_offset(PARTITION)
    return server.store.checkpoint_offset(PARTITION) == end and not server.store.unsettled_keys


def test_one_follows_a_write_after_its_interval_and_none_what_is_idle() -> None:
    server = make_server()
    before = server.runtime.stats.checkpoints
    server.advance(60_000)
    assert server.runtime.stats.checkpoints == before
    commit(server, 1)
    server.advance(4_900)
    assert not is_settled(server)
    assert server.runtime.stats.unsettled_keys == 1
    server.advance(200)
    assert is_settled(server)
    assert server.runtime.stats.unsettled_keys == 0
    assert server.runtime.stats.checkpoints == before + 1


@pytest.mark.parametrize(
    "settings",
    [
        replace(SETTINGS, log_checkpoint_keys=10),
        replace(SETTINGS, log_checkpoint_bytes=1_000),
    ],
    ids=["keys", "bytes"],
)
def test_one_comes_earlier_by_keys_and_by_bytes(settings: CoordinatorSettings) -> None:
    server = make_server(settings)
    commit(server, 1, partitions=5)
    assert not is_settled(server)
    commit(server, 1, partitions=15)
    server.advance(1)
    assert is_settled(server)


def test_repeated_commits_are_one_key() -> None:
    server = make_server(replace(SETTINGS, log_checkpoint_keys=10))
    for offset in range(50):
        commit(server, offset)
    assert server.store.unsettled_keys == 1


def test_commits_are_taken_and_read_between_its_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "SLICE_KEYS", 1)
    server = make_server()
    commit(server, 1, partitions=40)
    taken: list[int] = []
    write = MemoryLogStore.write_checkpoint

    def between(self: MemoryLogStore, keys_max: int) -> Iterator[bool]:
        for number, step in enumerate(write(self, keys_max)):
            yield step
            if number % 10 == 5:
                taken.append(number)
                pending = server.submit(server.commit_command("g", "", None, "foo", {number: 7}))
                assert not pending.is_answered

    monkeypatch.setattr(MemoryLogStore, "write_checkpoint", between)
    server.advance(5_100)
    assert len(taken) == 4
    assert not is_settled(server)
    expected = {number: 7 if number in taken else 1 for number in range(40)}
    assert read_offsets(server, 40) == expected
    server.advance(5_100)
    assert is_settled(server)
    server.restart()
    assert read_offsets(server, 40) == expected


def test_a_store_that_stalls_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    server = make_server()
    commit(server, 1)
    write = MemoryLogStore.write_checkpoint
    tries: list[int] = []

    def stalling(self: MemoryLogStore, keys_max: int) -> Iterator[bool]:
        for number in range(3):
            tries.append(number)
            yield False
        yield from write(self, keys_max)

    monkeypatch.setattr(MemoryLogStore, "write_checkpoint", stalling)
    server.advance(5_002)
    assert tries == [0]
    server.advance(100)
    assert tries[:3] == [0, 1, 2]
    assert is_settled(server)


def test_a_write_that_fails_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    server = make_server()
    commit(server, 1)

    def failing(self: MemoryLogStore, keys_max: int) -> Iterator[bool]:
        raise StoreFailed("no space left")
        yield True

    monkeypatch.setattr(MemoryLogStore, "write_checkpoint", failing)
    server.advance(5_100)
    assert [str(failure) for failure in server.failures] == ["no space left"]


def test_none_is_written_while_space_is_low() -> None:
    server = make_server()
    commit(server, 1)
    held = [True]
    server.runtime.parts.background._checkpoints._is_held = lambda: held[0]
    server.advance(20_000)
    assert not is_settled(server)
    held[0] = False
    server.advance(5_100)
    assert is_settled(server)


def test_one_that_is_cut_short_by_the_end_leaves_all_to_the_next_start() -> None:
    server = make_server()
    commit(server, 3, partitions=64)
    server.advance(4_999)
    before = read_offsets(server, 64)
    server.crash(survivors=server.store.unsynced_writes)
    server.start()
    assert read_offsets(server, 64) == before
