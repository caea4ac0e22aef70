"""What the server does by itself, and offline: starts, sweeps, conversions, imports."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from coordinator.runtime.runtime import Runtime
from model.commands.consumer import ConsumerGroupHeartbeat, ConsumerGroupLeave
from model.commands.offsets import TopicOffsets
from model.commands.transactions import TxnOffsetCommit, WriteTxnMarkers
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, LogPartition, MemberId, ProducerId, TopicName
from model.log.commit_records import make_offset_columns
from storage.codec.batch_encoding import encode_batch
from storage.columnar.batch_columns import read_batch_columns
from storage.columnar.block_fold import BlockFold
from storage.columnar.record_columns import read_record_columns
from storage.log.compression import decompress
from storage.segments.folder import compute_segment_name, open_segments
from storage.transfer.import_log import ImportOptions, compute_aborts, import_segments
from tests.cost.server import CostServer, cost_server
from tests.cost.test_apis import G, commit, commit_in_parts, make_members
from tests.cost.turns import Counted, CountedLoop, LoopScheduler, Steps, check_law
from tests.support.memory import MemoryLogStore
from tests.support.storage.appends import offset_key, offset_value, write_checkpoint
from tests.support.storage.commit_log import SHAPES, make_commit_log
from tests.support.virtual.server import CALLER

Prepare = Callable[[CostServer, int], None]
SETTINGS: Final = CoordinatorSettings(
    offsets_retention_minutes=1,
    offsets_retention_check_interval_ms=10_000,
    log_history_check_interval_ms=1_000,
    log_checkpoint_interval_ms=500,
    group_consumer_regex_batch_refresh_min_interval_ms=10,
)
AT_REST: Final = replace(SETTINGS, offsets_expiry="off")
TRIMMED: Final = replace(AT_REST, log_history_bytes=1_000)


# ----------------------------------------------------------------------------- what is there


def join(group: str, member: str, **said: Any) -> ConsumerGroupHeartbeat:
    said = {"subscribed_topic_names": (TopicName("t"),), **said}
    return ConsumerGroupHeartbeat(
        CALLER, GroupId(group), MemberId(member), 0, rebalance_timeout_ms=60_000, owned=(), **said
    )


def make_simple_groups(server: CostServer, n: int) -> None:
    server.create(1, "t")
    server.call_all(commit(f"g{number}", "t", (0,)) for number in range(n))


def make_offsets(server: CostServer, n: int) -> None:
    server.create(n, "t")
    server.call_all(commit_in_parts(G, "t", n))


def make_topics(server: CostServer, n: int) -> None:
    server.create(1, *(f"t{number}" for number in range(n)))


def make_groups(server: CostServer, n: int) -> None:
    server.create(1, "t")
    server.call_all(join(f"g{number}", "m") for number in range(n))


def make_one_group(server: CostServer, n: int) -> None:
    server.create(n, "t")
    server.call_all(join(G, f"m{number}") for number in range(n))


def in_transaction(producer: int, partitions: Iterable[int]) -> TxnOffsetCommit:
    rows = make_offset_columns((number, 1, -1, "") for number in partitions)
    topics = (TopicOffsets(TopicName("t"), None, rows),)
    return TxnOffsetCommit(CALLER, GroupId(G), ProducerId(producer), 0, topics, MemberId(""), None)


def make_waiting(server: CostServer, n: int) -> None:
    """Offsets of one transaction."""
    server.create(n, "t")
    server.call_all(in_transaction(7, range(at, at + 100)) for at in range(0, n, 100))


def make_transactions(server: CostServer, n: int) -> None:
    """Of as many producers, each with an offset of one partition."""
    server.create(1, "t")
    server.call_all(in_transaction(number, (0,)) for number in range(n))


def make_producers(server: CostServer, n: int) -> None:
    """Each with a marker."""
    server.call_all(
        WriteTxnMarkers(CALLER, LogPartition(0), ProducerId(number), 0, 0, committed=False)
        for number in range(n)
    )


# ---------------------------------------------------------------------------------- starts


def count_start(store: MemoryLogStore) -> Counted:
    loop = CountedLoop()
    scheduler = LoopScheduler(loop)
    runtime = Runtime(store, AT_REST, clock=scheduler, scheduler=scheduler)
    counted = loop.count(runtime.begin_load, runtime.ready)
    # Also what begins with it.
    rest = loop.count(lambda: None, lambda: loop.time() > 1_005)
    loop.close()
    return Counted(counted.total, max(counted.longest, rest.longest), counted.turns)


@pytest.mark.parametrize(
    ("prepare", "n", "limit"),
    [
        (make_simple_groups, 2_000, 1_000_000),
        (make_offsets, 2_000, 1_000_000),
        # Before anybody is served.
        (make_topics, 2_000, 8_000),
        (make_groups, 500, 20_000),
        (make_one_group, 200, 1_000),
        (make_waiting, 2_000, 100_000),
        (make_transactions, 2_000, 20_000),
        (make_producers, 2_000, 50_000),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_start_is_linear_and_has_short_turns(
    prepare: Prepare, n: int, limit: int, tmp_path: Path
) -> None:
    runs = iter(range(100))

    def measure(count: int) -> Counted:
        with cost_server(tmp_path / str(next(runs)), settings=AT_REST) as server:
            prepare(server, count)
            store = server.store
        found = store.crash(1_000_000)
        # Opening a store replays what no checkpoint has, and makes one.
        write_checkpoint(found)
        # Else the first write of the start would be charged with it.
        found.sync()
        return count_start(found)

    check_law(measure, n, limit)


# ---------------------------------------------------------------------------------- sweeps


def count_for(server: CostServer, begin: Callable[[], object], duration_s: float) -> Counted:
    end_s = server.loop.time() + duration_s
    server.loop.call_at(end_s, lambda: None)
    return server.loop.count(begin, lambda: server.loop.time() >= end_s)


def expire_offsets(server: CostServer, n: int) -> Counted:
    make_offsets(server, n)
    counted = count_for(server, lambda: None, 90)
    assert server.runtime.stats.offsets_expired == n
    return counted


def expire_groups(server: CostServer, n: int) -> Counted:
    make_simple_groups(server, n)
    counted = count_for(server, lambda: None, 90)
    assert server.runtime.stats.offsets_expired == n
    return counted


def trim(server: CostServer, n: int) -> Counted:
    server.create(1, "t")
    for _ in range(n):
        server.call_all((commit(G, "t", (0,)),))
    counted = count_for(server, lambda: None, 20)
    assert server.runtime.stats.history_trimmed_bytes > 50 * n
    return counted


def resolve_patterns(server: CostServer, n: int) -> Counted:
    """As many of one group."""
    server.create(1, "t", "u")
    joins = [
        join(G, f"m{number}", subscribed_topic_names=(), subscribed_topic_regex=f"t.{{0,{number}}}")
        for number in range(n)
    ]
    return count_for(server, lambda: submit_all(server, joins), 5)


def resolve_topics(server: CostServer, n: int) -> Counted:
    """One pattern for as many."""
    make_topics(server, n)
    each = join(G, "m", subscribed_topic_names=(), subscribed_topic_regex="t.*")
    return count_for(server, lambda: server.runtime.submit(each, _ignore), 5)


def time_out(server: CostServer, n: int) -> Counted:
    """A transaction of as many offsets."""
    make_waiting(server, n)
    counted = count_for(server, lambda: None, 30 * 60)
    assert server.runtime.stats.transactions_timed_out == 1
    return counted


def delete_topics(server: CostServer, n: int) -> Counted:
    """One, with as many offsets."""
    make_offsets(server, n)
    return server.count(20, 5, topic_names=("t",))


def upgrade(server: CostServer, n: int) -> Counted:
    server.create(n, "t")
    make_members(server, n)
    return count_for(server, lambda: server.runtime.submit(join(G, "new"), _ignore), 1)


def downgrade(server: CostServer, n: int) -> Counted:
    upgrade(server, n)
    leave = ConsumerGroupLeave(CALLER, GroupId(G), MemberId("new"))
    return count_for(server, lambda: server.runtime.submit(leave, _ignore), 1)


def expire_sessions(server: CostServer, n: int) -> Counted:
    make_one_group(server, n)
    counted = count_for(server, lambda: None, 60)
    assert sum(server.runtime.stats.members_expired.values()) == n
    return counted


def submit_all(server: CostServer, commands: Iterable[ConsumerGroupHeartbeat]) -> None:
    for command in commands:
        server.runtime.submit(command, _ignore)


def _ignore(answer: object) -> None:
    pass


@pytest.mark.parametrize(
    ("sweep", "n", "limit"),
    [
        (expire_offsets, 2_000, 100_000),
        (expire_groups, 1_000, 20_000),
        (trim, 500, 2_000),
        (resolve_patterns, 50, 200),
        # One member's part of a target is one record.
        (resolve_topics, 1_000, 5_000),
        (time_out, 500, 2_000),
        (delete_topics, 2_000, 10_000),
        # One command, and one write.
        (upgrade, 50, 250),
        (downgrade, 50, 250),
        (expire_sessions, 100, 1_000),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_sweep_is_linear_and_has_short_turns(
    sweep: Callable[[CostServer, int], Counted], n: int, limit: int, tmp_path: Path
) -> None:
    runs = iter(range(100))

    def measure(count: int) -> Counted:
        settings = TRIMMED if sweep is trim else SETTINGS
        with cost_server(tmp_path / str(next(runs)), settings=settings) as server:
            counted = sweep(server, count)
            counted.kept = []
            return counted

    check_law(measure, n, limit)


# --------------------------------------------------------------------------------- offline


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: str(shape.name))
def test_an_import_is_linear(shape: Any, tmp_path: Path) -> None:
    """What Python does of it: most is done in columns."""
    runs = iter(range(100))

    def measure(count: int) -> Counted:
        place = tmp_path / str(next(runs))
        log = place / "log" / "__consumer_offsets-0"
        log.mkdir(parents=True)
        with (log / compute_segment_name(0)).open("wb") as file:
            file.writelines(make_commit_log(shape, count))
        steps = Steps()
        options = ImportOptions(partitions=1)
        with steps.on():
            import_segments(open_segments(place / "log"), place / "store", options, lambda _: None)
        return Counted(steps.count)

    check_law(measure, 20_000, 80_000)


def make_hanging_log(count: int) -> list[bytes]:
    """Producers that hang with one key, commits of it without a transaction, and their markers."""
    pair = (offset_key("g"), offset_value(1))
    log = [
        encode_batch(number, [pair], 5, producer_id=number, producer_epoch=0, is_transactional=True)
        for number in range(count)
    ]
    log.extend(encode_batch(count + number, [pair], 5) for number in range(count))
    log.extend(compute_aborts(dict.fromkeys(range(count), 0), 2 * count, 5))
    return log


def test_a_fold_of_very_many_that_hang_with_one_key_is_linear() -> None:
    """Bug: each commit of the key looked at all that waited with it."""

    def measure(count: int) -> Counted:
        folded, steps = BlockFold(), Steps()
        batches = read_batch_columns(make_hanging_log(count))
        records = read_record_columns(batches, decompress)
        with steps.on():
            folded.apply(batches, records)
        assert not folded.pending()
        return Counted(steps.count)

    check_law(measure, 200, 800)
