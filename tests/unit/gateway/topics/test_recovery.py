"""Recovery of the store: kills, torn tails, damage, lost records, lost files."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.topics.topic_catalogue import PartitionKey
from model.errors import ErrorCode
from model.ids import TopicName
from model.topics import Topic
from tests.groups import CHECKOUT
from tests.support.waiting import until
from tests.unit.gateway.topics.store_rig import (
    KEY,
    ORDERS,
    FakeCoordinator,
    a_batch,
    files,
    produced,
    run_store,
    segment_files,
)

SMALL_SEGMENTS = {"gateway_topics_segment_bytes": 500, "message_max_bytes": 500}


async def test_a_restart_finds_everything(tmp_path: Path) -> None:
    async with run_store(tmp_path, **SMALL_SEGMENTS) as store:
        for number in range(30):
            store.append(a_batch(b"%d" % number))
        before = store.values()
    assert len(segment_files(tmp_path)) > 3
    async with run_store(tmp_path, **SMALL_SEGMENTS) as store:
        assert (store.start(), store.end()) == (0, 30)
        assert store.values() == before
        assert store.values(17) == before[17:]
        assert store.append(a_batch(b"next")).base_offset == 30
        assert store.values(30) == [(30, b"next")]


async def test_a_tail_torn_at_any_byte_is_cut_off(tmp_path: Path) -> None:
    """A process killed within a write leaves the beginning of a batch."""
    whole = tmp_path / "whole"
    async with run_store(whole) as store:
        store.append(a_batch(b"a"))
        store.append(a_batch(b"b" * 40))
    (segment,) = segment_files(whole)
    data = segment.read_bytes()
    last = len(a_batch(b"b" * 40))
    for cut in range(len(data) - last, len(data)):
        torn = tmp_path / "torn"
        shutil.rmtree(torn, ignore_errors=True)
        shutil.copytree(whole / ORDERS.hex(), torn / ORDERS.hex())
        (segment,) = segment_files(torn)
        segment.write_bytes(data[:cut])
        async with run_store(torn) as store:
            assert store.values() == [(0, b"a")], cut
            assert store.append(a_batch(b"c")).base_offset == 1
            assert store.values() == [(0, b"a"), (1, b"c")]
        assert segment.stat().st_size == len(a_batch(b"a") + a_batch(b"c"))


@pytest.mark.parametrize("at", [1, 9, 16, 17, 30, 61, 65])
async def test_a_damaged_batch_ends_the_newest_segment(tmp_path: Path, at: int) -> None:
    """A power failure may leave any page of what was not synced."""
    async with run_store(tmp_path) as store:
        store.append(a_batch(b"a"))
        store.append(a_batch(b"b"))
        store.append(a_batch(b"c"))
    (segment,) = segment_files(tmp_path)
    flip(segment, len(a_batch(b"a")) + at)
    files(tmp_path, "end-offsets")[0].unlink()
    async with run_store(tmp_path) as store:
        assert store.values() == [(0, b"a")]
        assert store.end() == 1


async def test_a_damaged_batch_in_an_older_segment_leaves_a_gap(tmp_path: Path) -> None:
    async with run_store(tmp_path, **SMALL_SEGMENTS) as store:
        for number in range(30):
            store.append(a_batch(b"%02d" % number))
    first, second, *_ = segment_files(tmp_path)
    flip(first, len(a_batch(b"00")) + 70)
    async with run_store(tmp_path, **SMALL_SEGMENTS) as store:
        rest = int(second.stem)
        assert [offset for offset, _ in store.values()] == [0, *range(rest, 30)]
        assert store.values(1)[0] == (rest, b"%02d" % rest)
        assert store.append(a_batch()).base_offset == 30


async def test_partitions_are_opened_in_the_background(tmp_path: Path) -> None:
    coordinator = FakeCoordinator(Topic(TopicName("orders"), ORDERS, 50))
    async with run_store(tmp_path, coordinator) as store:
        for partition in range(50):
            for _ in range(3):
                store.append(a_batch(), PartitionKey(ORDERS, partition))
    async with run_store(tmp_path, coordinator) as store:
        assert store.append(a_batch(), PartitionKey(ORDERS, 49)).base_offset == 3
        logs = store.topics._logs
        keys = [PartitionKey(ORDERS, partition) for partition in range(50)]
        await until(lambda: all(logs.get(key) is not None for key in keys))
        assert [store.end(key) for key in keys] == [3] * 49 + [4]


async def test_a_request_that_overtakes_the_opening_wins(tmp_path: Path) -> None:
    """Opening is abandoned, and truncates nothing that was appended meanwhile."""
    async with run_store(tmp_path) as store:
        for _ in range(10):
            store.append(a_batch())
    async with run_store(tmp_path) as store:
        logs = store.topics._logs
        for _ in range(5):
            logs.remove(KEY)
            steps = logs.open_in_steps(KEY)
            next(steps)
            before = store.end()
            store.append(a_batch())
            assert list(steps) == []
            assert store.end() == before + 1
    async with run_store(tmp_path) as store:
        assert [offset for offset, _ in store.values()] == list(range(15))


async def test_foreign_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "readme.txt").write_text("mine")
    async with run_store(tmp_path) as store:
        store.append(a_batch())
        partition = segment_files(tmp_path)[0].parent
        (partition / "x.log").write_text("not a segment")
    async with run_store(tmp_path) as store:
        assert store.end() == 1
    assert (tmp_path / "notes" / "readme.txt").read_text() == "mine"


# ----------------------------------------------------------------------------------- end offsets


async def test_lost_records_do_not_give_their_offsets_away_again(tmp_path: Path) -> None:
    """After a power failure the end offset is at least the durable one."""
    async with run_store(tmp_path) as store:
        for _ in range(10):
            store.append(a_batch())
    (segment,) = segment_files(tmp_path)
    segment.write_bytes(segment.read_bytes()[: 4 * len(a_batch())])
    async with run_store(tmp_path) as store:
        assert store.end() == 10
        assert [offset for offset, _ in store.values()] == [0, 1, 2, 3]
        assert store.read(6).error == 0
        assert store.append(a_batch(b"next")).base_offset == 10
        assert store.values(6) == [(10, b"next")]
    async with run_store(tmp_path) as store:
        assert store.values(4) == [(10, b"next")]


async def test_a_lost_partition_keeps_its_end(tmp_path: Path) -> None:
    async with run_store(tmp_path) as store:
        store.append(a_batch(b"a", b"b"))
    shutil.rmtree(tmp_path / ORDERS.hex())
    async with run_store(tmp_path) as store:
        assert (store.start(), store.end()) == (2, 2)
        assert store.read(0).error == ErrorCode.OFFSET_OUT_OF_RANGE
        assert store.append(a_batch(b"c")).base_offset == 2
    async with run_store(tmp_path) as store:
        assert (store.start(), store.end()) == (2, 3)


async def test_an_end_is_lifted_above_the_committed_offset_for_good(tmp_path: Path) -> None:
    name = TopicName("orders")
    async with run_store(tmp_path) as store:
        store.append(a_batch())
        store.topics.lift_end_offsets(
            {(name, 0): 50, (name, 1): 7, (name, 2): 0, (name, 9): 3, (TopicName("no"), 0): 5}
        )
        assert [store.end(PartitionKey(ORDERS, number)) for number in range(4)] == [50, 7, 0, 0]
        store.topics.lift_end_offsets({(name, 0): 20})
        assert store.end() == 50
        assert store.append(a_batch()).base_offset == 50
    async with run_store(tmp_path) as store:
        assert [store.end(PartitionKey(ORDERS, number)) for number in range(4)] == [51, 7, 0, 0]


async def test_a_lift_that_nothing_followed_survives_kill(tmp_path: Path) -> None:
    lifted = tmp_path / "lifted"
    async with run_store(tmp_path / "store") as store:
        store.topics.lift_end_offsets({(TopicName("orders"), 0): 50})
        shutil.copytree(tmp_path / "store", lifted)
    async with run_store(lifted) as store:
        assert store.end() == 50


async def test_a_commit_that_cannot_be_true_does_not_use_up_the_partition(tmp_path: Path) -> None:
    async with run_store(tmp_path) as store:
        store.topics.lift_end_offsets({(TopicName("orders"), 0): (1 << 63) - 1})
        assert store.append(a_batch()).error == 0


async def test_a_partition_at_its_last_offset_refuses(tmp_path: Path) -> None:
    async with run_store(tmp_path) as store:
        store.append(a_batch())
        log = store.open()
        log.end_offset = (1 << 63) - 2
        assert store.append(a_batch(b"a", b"b")).error == ErrorCode.KAFKA_STORAGE_ERROR


async def test_end_offsets_are_synced_by_themselves(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    async with run_store(tmp_path / "store", gateway_topics_sync_interval_ms=1) as store:
        store.append(a_batch(b"a", b"b"))
        await until(lambda: has_bytes(tmp_path / "store" / "end-offsets"))
        copy.mkdir()
        shutil.copy(tmp_path / "store" / "end-offsets", copy)
    async with run_store(copy) as store:
        assert store.end() == 2


async def test_torn_end_offsets_are_read_as_far_as_they_are_whole(tmp_path: Path) -> None:
    for partition in range(3):
        async with run_store(tmp_path) as store:
            store.append(a_batch(), PartitionKey(ORDERS, partition))
    shutil.rmtree(tmp_path / ORDERS.hex())
    file = tmp_path / "end-offsets"
    file.write_bytes(file.read_bytes()[:-1])
    ends = []
    async with run_store(tmp_path) as store:
        ends = [store.end(PartitionKey(ORDERS, partition)) for partition in range(3)]
        assert ends == [1, 1, 0]
        store.append(a_batch(), PartitionKey(ORDERS, 2))
        store.append(a_batch(), PartitionKey(ORDERS, 2))
    shutil.rmtree(tmp_path / ORDERS.hex())
    async with run_store(tmp_path) as store:
        ends = [store.end(PartitionKey(ORDERS, partition)) for partition in range(3)]
    assert ends == [1, 1, 2], "what is written after a torn frame counts"


async def test_the_file_of_end_offsets_stays_small(tmp_path: Path) -> None:
    coordinator = FakeCoordinator(Topic(TopicName("orders"), ORDERS, 100))
    async with run_store(tmp_path, coordinator) as store:
        for _ in range(60):
            for partition in range(100):
                store.append(a_batch(), PartitionKey(ORDERS, partition))
            store.topics.sync_end_offsets()
    assert files(tmp_path, "end-offsets")[0].stat().st_size < 70_000
    shutil.rmtree(tmp_path / ORDERS.hex())
    async with run_store(tmp_path, coordinator) as store:
        assert {store.end(PartitionKey(ORDERS, number)) for number in range(100)} == {60}


async def test_a_lift_is_needed_unless_the_machine_ran_on(tmp_path: Path) -> None:
    async with run_store(tmp_path) as store:
        assert store.topics.needs_lift
    async with run_store(tmp_path) as store:
        assert store.topics.needs_lift, "it was not lifted, so it is still to be done"
        store.topics.lift_end_offsets({})
        assert not store.topics.needs_lift
        await store.topics.start()
    async with run_store(tmp_path) as store:
        assert not store.topics.needs_lift
    (tmp_path / "boot-id").write_text("another run of the machine")
    async with run_store(tmp_path) as store:
        assert store.topics.needs_lift


# -------------------------------------------------------------------------------------- producers


async def test_producers_are_known_after_a_restart(tmp_path: Path) -> None:
    async with run_store(tmp_path) as store:
        for sequence in range(8):
            store.append(produced(sequence))
    async with run_store(tmp_path) as store:
        repeated = store.append(produced(6))
        assert (repeated.error, repeated.base_offset) == (0, 6)
        assert store.append(produced(9)).error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert store.append(produced(8)).base_offset == 8


@pytest.mark.parametrize("is_lost", [False, True])
async def test_producers_of_older_segments_are_known(tmp_path: Path, is_lost: bool) -> None:
    """Also where the files that spare reading those segments are lost or damaged."""
    async with run_store(tmp_path, **SMALL_SEGMENTS) as store:
        store.append(produced(0, producer_id=1))
        for sequence in range(40):
            store.append(produced(sequence, producer_id=2))
    assert len(segment_files(tmp_path)) > 5
    for number, state in enumerate(files(tmp_path, "**/*.producers") if is_lost else []):
        flip(state, 20) if number else state.unlink()
    async with run_store(tmp_path, **SMALL_SEGMENTS) as store:
        assert store.append(produced(0, producer_id=1)).base_offset == 0
        assert store.append(produced(5, producer_id=1)).error != 0
        assert store.append(produced(1, producer_id=1)).base_offset == 41


async def test_producers_outlive_their_records(tmp_path: Path) -> None:
    limits = SMALL_SEGMENTS | {"gateway_topics_retention_bytes": 500}
    async with run_store(tmp_path, **limits) as store:
        store.append(produced(0, producer_id=1))
        for sequence in range(40):
            store.append(produced(sequence, producer_id=2))
        assert store.start() > 1
    async with run_store(tmp_path, **limits) as store:
        assert store.append(produced(7, producer_id=1)).error != 0
        assert store.append(produced(1, producer_id=1)).error == 0


# ------------------------------------------------------------------------------------------- kill

_WRITER = """
import asyncio, sys
from pathlib import Path
from tests.unit.gateway.topics.store_rig import KEY, a_batch, run_store

async def main() -> None:
    limits = {"gateway_topics_segment_bytes": 20_000, "message_max_bytes": 20_000}
    async with run_store(Path(sys.argv[1]), **limits) as store:
        while True:
            for _ in range(50):
                end = store.append(a_batch(b"x" * 50)).base_offset
            sys.stdout.write(f"{end}\\n")
            sys.stdout.flush()
            await asyncio.sleep(0)

asyncio.run(main())
"""


async def test_nothing_acknowledged_is_lost_when_the_process_is_killed(tmp_path: Path) -> None:
    acknowledged = -1
    for _ in range(3):
        last = write_and_kill(tmp_path, at_least=acknowledged + 500)
        assert last > acknowledged
        acknowledged = last
        async with run_store(tmp_path) as store:
            assert store.end() > acknowledged
            offsets = [offset for offset, _ in store.values()]
            assert offsets == list(range(store.end()))


def write_and_kill(folder: Path, at_least: int) -> int:
    """A process appends until it is killed; the last offset that it had acknowledged."""
    process = subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(folder)],
        stdout=subprocess.PIPE,
        cwd=CHECKOUT,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) >= at_least:
            break
    process.send_signal(signal.SIGKILL)
    rest = [line for line in process.stdout.read().splitlines() if line]
    process.wait()
    process.stdout.close()
    return int(rest[-1]) if rest else int(line)


def flip(path: Path, position: int) -> None:
    """Change one bit of a file."""
    data = bytearray(path.read_bytes())
    data[position] ^= 0x04
    path.write_bytes(data)


def has_bytes(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0
