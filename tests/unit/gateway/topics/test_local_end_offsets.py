"""Where the partitions of the server's own topics end."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.topics import local_end_offsets
from gateway.topics.local_end_offsets import LocalEndOffsets
from gateway.topics.topic_catalogue import PartitionKey
from model.ids import TopicName
from tests.unit.gateway.topics.store_rig import ORDERS, FakeCoordinator, a_batch, run_store

NAME = TopicName("orders")


@pytest.mark.parametrize("per_slice", [1, 2, 100])
async def test_ends_are_found_of_what_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, per_slice: int
) -> None:
    monkeypatch.setattr(local_end_offsets, "QUERIES_SLICE", per_slice)
    async with run_store(tmp_path) as store:
        store.append(a_batch(b"1", b"2", b"3"))
        store.append(a_batch(b"1"), PartitionKey(ORDERS, 2))
        wanted = [(NAME, n) for n in (0, 1, 2, 4, -1)]
        found = await LocalEndOffsets(store.topics).find_end_offsets(
            [*wanted, (TopicName("gone"), 0), (NAME, 3)]
        )
        assert found == {(NAME, 0): 3, (NAME, 1): 0, (NAME, 2): 1, (NAME, 3): 0}
        assert await LocalEndOffsets(store.topics).find_end_offsets([]) == {}


async def test_ends_stay_after_a_restart(tmp_path: Path) -> None:
    coordinator = FakeCoordinator()
    async with run_store(tmp_path, coordinator) as store:
        store.append(a_batch(b"1", b"2"))
    async with run_store(tmp_path, coordinator) as store:
        found = await LocalEndOffsets(store.topics).find_end_offsets([(NAME, 0)])
        assert found == {(NAME, 0): 2}
        coordinator.delete("orders")
        assert await LocalEndOffsets(store.topics).find_end_offsets([(NAME, 0)]) == {}


async def test_of_a_topic_without_records_here_nothing_is_known(tmp_path: Path) -> None:
    """Its records may be elsewhere: an end of 0, or where its commits are, would be made up."""
    coordinator = FakeCoordinator()
    async with run_store(tmp_path, coordinator) as store:
        ends = LocalEndOffsets(store.topics)
        store.topics.lift_end_offsets({(NAME, 0): 50})
        for timestamp_ms in (-1, -2, 0):
            assert await ends.find_offsets_at([(NAME, 0), (NAME, 1)], timestamp_ms) == {}
        assert await ends.find_end_offsets([(NAME, 0)]) == {}
        store.append(a_batch(b"1"), PartitionKey(ORDERS, 2))
        known = {(NAME, 0): 50, (NAME, 1): 0}
        assert await ends.find_end_offsets([(NAME, 0), (NAME, 1)]) == known
    async with run_store(tmp_path, coordinator) as store:
        assert await LocalEndOffsets(store.topics).find_end_offsets(list(known)) == known
        coordinator.delete("orders")
        assert not store.topics.has_records(ORDERS)


async def test_what_retention_has_taken_was_here(tmp_path: Path) -> None:
    coordinator = FakeCoordinator()
    async with run_store(tmp_path, coordinator) as store:
        store.append(a_batch(b"1"))
        log = store.open()
        assert list(log.drop_until(0))
    async with run_store(tmp_path, coordinator) as store:
        assert await LocalEndOffsets(store.topics).find_end_offsets([(NAME, 0)]) == {(NAME, 0): 1}
