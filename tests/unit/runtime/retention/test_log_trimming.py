"""Trimming removes batches past the limits and does not change the state."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from coordinator.runtime.retention import log_trimming
from coordinator.runtime.retention.log_trimming import STEP_BYTES
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import LogOffset, LogPartition
from model.log.side_records import ImportGraceKey, ImportGraceValue, SideRecord
from storage.codec.batch_encoding import encode_batch
from storage.codec.batches import Batch, decode_batch
from storage.log.fold import PartitionFold
from storage.log.trim import read_history_start, read_measure
from storage.log_store import PartitionRewrite, StoreFailed, StoreStalled
from storage.rocks.rocks_opening import open_store
from storage.side_codec import encode_side
from storage.transfer.imported import Imported, pack_imported
from tests.support.memory import MemoryLogStore
from tests.support.shadow import describe_shards
from tests.support.storage.appends import offset_key, offset_value
from tests.support.storage.raw_log import RawLog
from tests.support.virtual.scheduler import START_WALL_MS
from tests.support.virtual.server import VirtualServer

PARTITION = LogPartition(0)
MINUTE_MS = 60_000
SETTINGS = CoordinatorSettings(
    log_history_ms=MINUTE_MS,
    log_history_check_interval_ms=1_000,
    log_checkpoint_interval_ms=100,
    offsets_expiry="off",
    group_consumer_session_timeout_ms=100 * MINUTE_MS,
)
BY_BYTES = replace(SETTINGS, log_history_ms=10**9, log_history_bytes=2_000)


def make_server(settings: CoordinatorSettings = SETTINGS) -> VirtualServer:
    server = VirtualServer({"foo": 4}, settings=settings, partitions=1)
    server.join("g", "a", ["foo"])
    return server


def commit_often(server: VirtualServer, times: int, every_ms: int) -> None:
    for offset in range(times):
        server.ask(server.commit_command("s", "", None, "foo", {offset % 4: offset}))
        server.advance(every_ms)


def read_batches(server: VirtualServer) -> list[Batch]:
    return [decode_batch(batch) for batch in server.store.read_log(PARTITION)]


def check_fold(server: VirtualServer) -> None:
    """``latest`` equals the fold of the log."""
    folded = PartitionFold()
    for batch in server.store.read_log(PARTITION):
        folded.apply(batch)
    entries = {entry.key: entry for entry in server.store.latest(PARTITION)}
    assert folded.latest == entries
    assert {
        (producer_id, entry.key): entry
        for producer_id, found in folded.pending.items()
        for entry in found.values()
    } == {(producer_id, entry.key): entry for producer_id, entry in server.store.pending(PARTITION)}


def test_what_is_older_than_the_history_leaves_it_and_the_state_stays() -> None:
    server = make_server()
    commit_often(server, 30, 10_000)
    before = describe_shards(server.runtime.shards)
    batches = read_batches(server)
    start = read_history_start(server.store, PARTITION)
    now_ms = server.scheduler.wall_ms()
    whole = [batch for batch in batches if batch.base_offset >= start.offset]
    assert 6 <= len(whole) <= 7
    assert all(batch.max_timestamp > now_ms - MINUTE_MS - 1_000 for batch in whole)
    assert now_ms - MINUTE_MS - 11_000 <= start.before_ms <= now_ms - MINUTE_MS
    # The group, its member, its target and what of the offsets is older than the history.
    assert len(batches) - len(whole) <= 5
    assert [server.fetch("s", "foo", number) for number in range(4)] == [28, 29, 26, 27]
    check_fold(server)
    server.restart()
    assert describe_shards(server.runtime.shards) == before
    assert [server.fetch("s", "foo", number) for number in range(4)] == [28, 29, 26, 27]


def test_nothing_is_trimmed_before_its_time() -> None:
    server = make_server()
    commit_often(server, 5, 10_000)
    assert read_history_start(server.store, PARTITION).offset == 0
    assert server.runtime.stats.history_trimmed_bytes == 0


def test_what_is_too_much_leaves_the_history_the_oldest_first() -> None:
    server = make_server(BY_BYTES)
    commit_often(server, 100, 100)
    server.advance(2_000)
    start = read_history_start(server.store, PARTITION).offset
    sizes = [batch.size for batch in read_batches(server) if batch.base_offset >= start]
    assert sum(sizes) <= 2_000 < sum(sizes) + max(sizes)
    assert server.runtime.stats.history_bytes == sum(sizes)
    check_fold(server)


def test_the_bytes_of_all_partitions_count_and_the_oldest_of_all_go() -> None:
    server = VirtualServer({"foo": 4}, settings=BY_BYTES, partitions=4)
    for offset in range(30):
        server.ask(server.commit_command("early", "", None, "foo", {0: offset}))
    early = server.runtime.partition_of("early")  # type: ignore[arg-type]
    server.advance(500)
    late = next(
        name
        for name in ("a", "b", "c", "d", "e")
        if server.runtime.partition_of(name) != early  # type: ignore[arg-type]
    )
    for offset in range(15):
        server.ask(server.commit_command(late, "", None, "foo", {0: offset}))
    server.advance(1_000)
    assert read_history_start(server.store, early).offset > 0
    assert read_history_start(server.store, server.runtime.partition_of(late)).offset == 0  # type: ignore[arg-type]
    assert server.runtime.stats.history_bytes <= 2_000


def test_a_restart_goes_on_with_what_was_measured() -> None:
    server = make_server(BY_BYTES)
    commit_often(server, 10, 500)
    server.advance(1_000)
    measure = read_measure(server.store, PARTITION)
    assert measure.end == server.store.next_offset(PARTITION)
    for _ in range(3):
        server.restart()
        commit_often(server, 3, 10)
    server.advance(1_000)
    sizes = [batch.size for batch in read_batches(server)]
    start = read_history_start(server.store, PARTITION).offset
    kept = sum(batch.size for batch in read_batches(server) if batch.base_offset >= start)
    assert server.runtime.stats.history_bytes == kept <= 2_000
    assert sizes


def test_a_crash_between_the_steps_costs_nothing_but_the_steps() -> None:
    server = make_server(replace(BY_BYTES, log_history_bytes=1))
    for number in range(40):
        commit_often(server, 3, 300)
        server.crash(survivors=number % 4)
        server.start()
        check_fold(server)
        server.advance(2_500)
        start = read_history_start(server.store, PARTITION).offset
        kept = sum(batch.size for batch in read_batches(server) if batch.base_offset >= start)
        assert server.runtime.stats.history_bytes == kept
    assert server.failures == []
    assert len(read_batches(server)) < 20


def test_an_imported_batch_counts_from_the_import() -> None:
    old_ms = START_WALL_MS - 100 * MINUTE_MS
    log = RawLog(MemoryLogStore(1))
    for number in range(5):
        pairs = [(offset_key("s"), offset_value(number))]
        log.append(0, [encode_batch(number, list(pairs), old_ms)])
    grace = SideRecord(ImportGraceKey(), ImportGraceValue(START_WALL_MS - MINUTE_MS // 2))
    log.store.write([], [encode_side(grace)])
    log.make_durable()
    assert isinstance(log.store, MemoryLogStore)
    server = VirtualServer(store=log.store, settings=SETTINGS)
    server.advance(MINUTE_MS // 2 - 1_000)
    assert read_history_start(server.store, PARTITION).offset == 0
    server.advance(2_000)
    assert read_history_start(server.store, PARTITION).offset == 4


@pytest.mark.parametrize("is_in_grace", [True, False])
def test_an_imported_batch_that_is_dated_ahead_keeps_no_other(is_in_grace: bool) -> None:
    """Bug: a broker's clock was wrong for one commit; nothing was trimmed until that time."""
    old_ms = START_WALL_MS - 2 * MINUTE_MS
    log = RawLog(MemoryLogStore(1))
    for number in range(5):
        written_ms = START_WALL_MS + 10_000 * MINUTE_MS if number == 2 else old_ms
        pairs = [(offset_key("s"), offset_value(number))]
        log.append(0, [encode_batch(number, list(pairs), written_ms)])
    log.store.rewrite(PartitionRewrite(PARTITION, (), (), pack_imported(Imported(LogOffset(5), 0))))
    if is_in_grace:
        grace = SideRecord(ImportGraceKey(), ImportGraceValue(START_WALL_MS - MINUTE_MS // 2))
        log.store.write([], [encode_side(grace)])
    log.make_durable()
    assert isinstance(log.store, MemoryLogStore)
    server = VirtualServer(store=log.store, settings=SETTINGS)
    if is_in_grace:
        server.advance(MINUTE_MS // 2 - 1_000)
        assert read_history_start(server.store, PARTITION).offset == 0
    server.advance(3_000)
    assert read_history_start(server.store, PARTITION).offset == 4
    check_fold(server)


def test_large_batches_are_decoded_elsewhere() -> None:
    log = RawLog(MemoryLogStore(1))
    for number in range(3):
        pairs = [(offset_key("s", n), b"v" * 200) for n in range(1_000)]
        log.append(0, [encode_batch(1_000 * number, list(pairs), START_WALL_MS - 2 * MINUTE_MS)])
        assert len(pairs) * 200 > STEP_BYTES
    log.make_durable()
    assert isinstance(log.store, MemoryLogStore)
    server = VirtualServer(store=log.store, settings=SETTINGS)
    server.scheduler.computing_ms = lambda: 40
    server.advance(1_030)
    assert read_history_start(server.store, PARTITION).offset == 0
    server.advance(1_000)
    assert [batch.base_offset for batch in read_batches(server)] == [1_000, 2_000]
    check_fold(server)


def test_who_is_behind_does_not_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bug: pausing three quarters of the time, trimming never caught up: 5 GiB an hour."""
    trimmed = []
    for share in (4, 0):
        # At 0 it is never behind.
        monkeypatch.setattr(log_trimming, "BEHIND_SHARE", share)
        log = RawLog(MemoryLogStore(1))
        for number in range(100):
            pairs = [(offset_key("s", n), b"v" * 200) for n in range(400)]
            log.append(0, [encode_batch(400 * number, list(pairs), START_WALL_MS)])
        log.make_durable()
        assert isinstance(log.store, MemoryLogStore)
        server = VirtualServer(store=log.store, settings=BY_BYTES)
        server.scheduler.computing_ms = lambda: 40
        server.advance(11_000)
        check_fold(server)
        stats = server.runtime.stats
        assert stats.history_bytes < 100 * 100_000 - stats.history_trimmed_bytes
        trimmed.append(stats.history_trimmed_bytes)
    behind, resting = trimmed
    assert behind > 3 * resting


def test_who_is_behind_says_so_once_until_it_has_caught_up() -> None:
    """Bug: close to the limit each step logged a line."""
    server = make_server(replace(BY_BYTES, log_history_bytes=1_000))
    trimming = server.runtime.parts.background._trimming
    said = []
    for bytes_now in (1_000, 1_300, 1_240, 1_260, 1_001, 1_300, 1_000, 1_240, 1_260):
        trimming.sizes.total = bytes_now
        said.append(trimming._is_behind())
    assert said == [False, True, True, True, True, True, False, False, True]


def test_a_store_that_stalls_is_asked_again() -> None:
    server = make_server()
    commit_often(server, 10, 1_000)
    rewrite, refusals = server.store.rewrite, iter([True] * 5)

    def refuse(step: object) -> None:
        if next(refusals, False):
            raise StoreStalled("later")
        rewrite(step)  # type: ignore[arg-type]

    server.store.rewrite = refuse  # type: ignore[method-assign, assignment]
    server.advance(2 * MINUTE_MS)
    assert next(refusals, None) is None
    assert len(read_batches(server)) <= 8
    assert server.failures == []


def test_a_write_that_failed_ends_the_process() -> None:
    server = make_server()
    commit_often(server, 10, 1_000)

    def fail(step: object) -> None:
        raise StoreFailed("gone")

    server.store.rewrite = fail  # type: ignore[method-assign, assignment]
    server.advance(2 * MINUTE_MS)
    assert [str(failure) for failure in server.failures] == ["gone"]


def test_a_batch_that_is_damaged_is_left_and_the_server_goes_on() -> None:
    log = RawLog(MemoryLogStore(1))
    for number in range(3):
        pairs = [(offset_key("s"), offset_value(number))]
        log.append(0, [encode_batch(number, list(pairs), START_WALL_MS - 2 * MINUTE_MS)])
    log.make_durable()
    assert isinstance(log.store, MemoryLogStore)
    appends = log.store._volatile.log[0]
    appends[1] = replace(appends[1], batch=appends[1].batch[:-1] + b"x")
    server = VirtualServer({"foo": 1}, store=log.store, settings=SETTINGS)
    server.advance(5_000)
    assert read_history_start(server.store, PARTITION).offset == 0
    server.ask(server.commit_command("t", "", None, "foo", {0: 1}))
    assert server.fetch("t", "foo", 0) == 1
    assert server.runtime.stats.history_partitions_left == 1


def test_a_partition_that_is_damaged_keeps_no_other_from_being_trimmed() -> None:
    """Bug: trimming stopped, and no metric showed it."""
    log = RawLog(MemoryLogStore(2))
    for partition in range(2):
        for number in range(3):
            pairs = [(offset_key("s"), offset_value(number))]
            batch = encode_batch(number, list(pairs), START_WALL_MS - 2 * MINUTE_MS)
            log.append(partition, [batch])
    log.make_durable()
    assert isinstance(log.store, MemoryLogStore)
    appends = log.store._volatile.log[0]
    appends[1] = replace(appends[1], batch=appends[1].batch[:-1] + b"x")
    server = VirtualServer({}, store=log.store, settings=SETTINGS, partitions=2)
    server.advance(5_000)
    starts = [read_history_start(server.store, LogPartition(number)).offset for number in (0, 1)]
    assert starts[0] == 0
    assert starts[1] > 0
    assert server.runtime.stats.history_partitions_left == 1


@pytest.mark.parametrize("times", [1, 4])
def test_the_same_on_rocksdb_over_restarts(tmp_path: Path, times: int) -> None:
    settings = replace(BY_BYTES, log_history_bytes=1_000)
    for number in range(times):
        store = open_store(tmp_path, partitions=1)
        server = VirtualServer(settings=settings, store=store)  # type: ignore[arg-type]
        if number == 0:
            server.create("foo", 4)
        commit_often(server, 40, 100)
        server.advance(2_000)
        assert server.failures == []
        assert server.runtime.stats.history_bytes <= 1_000
        check_fold(server)
        store.close()
