"""Transactions through the whole coordinator, against a model of log positions (S13, S15, S16).

Commands of a turn share a write. After every turn what the store has is the fold of its log, a
restart finds the live state, and a fetch shows what the model says.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.runtime.offsets.transaction_timeouts import INTERVAL_MS
from model.caller import INTERNAL
from model.commands.command import Command
from model.commands.offsets import DeleteTopicOffsets, OffsetFetch, TopicOffsets, TopicToFetch
from model.commands.transactions import TxnOffsetCommit, WriteTxnMarkers
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import ErrorCode
from model.ids import GroupId, LogPartition, ProducerId, TopicName
from model.log.commit_records import make_offset_columns
from model.responses.offsets import OffsetFetchResponse
from storage.codec.record_codec import decode_key
from storage.log.fold import PartitionFold
from storage.shard_side_codec import encode_producer_prefixes
from tests.support.virtual.server import CALLER, Pending, VirtualServer, error_name

FOO = TopicName("foo")
GROUPS = tuple(map(GroupId, "gh"))
PARTITIONS = (0, 1)
PRODUCERS = tuple(map(ProducerId, (1, 70_000)))
EPOCH = 5
SETTINGS = CoordinatorSettings(transaction_max_timeout_ms=30_000)
UNSTABLE = ErrorCode.UNSTABLE_OFFSET_COMMIT
Key = tuple[GroupId, int]


@dataclass
class Model:
    """``visible`` has (position, offset); ``pending`` the same by producer."""

    log_partition_of: Any
    position: int = 0
    visible: dict[Key, tuple[int, int]] = field(default_factory=dict)
    pending: dict[ProducerId, dict[Key, tuple[int, int]]] = field(default_factory=dict)

    def write(self, key: Key, offset: int, producer_id: ProducerId | None) -> None:
        self.position += 1
        kept = self.visible
        if producer_id is not None:
            kept = self.pending.setdefault(producer_id, {})
        kept[key] = (self.position, offset)

    def delete(self, key: Key) -> None:
        for kept in (self.visible, *self.pending.values()):
            kept.pop(key, None)

    def end(self, producer_id: ProducerId, partition: LogPartition, committed: bool) -> None:
        waiting = self.pending.get(producer_id, {})
        for key in [key for key in waiting if self.log_partition_of(key[0]) == partition]:
            ended = waiting.pop(key)
            if committed:
                self.visible[key] = max(ended, self.visible.get(key, (0, -1)))

    def offset(self, key: Key) -> int:
        return self.visible.get(key, (0, -1))[1]

    def is_unstable(self, key: Key) -> bool:
        return any(key in waiting for waiting in self.pending.values())


KEYS = st.sampled_from([(GROUPS[0], 0), (GROUPS[0], 0), (GROUPS[0], 1), (GROUPS[1], 0)])
"""One more often than the others, so that much happens to it."""

PRODUCER = st.sampled_from(PRODUCERS)
ACTS = st.one_of(
    st.tuples(st.just("commit"), KEYS),
    st.tuples(st.just("pend"), KEYS, PRODUCER),
    st.tuples(st.just("pend"), KEYS, PRODUCER),
    st.tuples(st.just("end"), st.sampled_from(GROUPS), PRODUCER, st.booleans()),
    st.tuples(st.just("end"), st.just(GROUPS[0]), PRODUCER, st.just(True)),
    st.tuples(st.just("delete"), KEYS),
    st.tuples(st.just("fetch"), KEYS),
)
TURNS = st.lists(st.lists(ACTS, min_size=1, max_size=8), min_size=2, max_size=5)


class Machine:
    """A server, the model, and what a fetch that is under way may answer."""

    def __init__(self, fsync_ms: int) -> None:
        self.server = VirtualServer({"foo": len(PARTITIONS)}, partitions=2, settings=SETTINGS)
        self.server.scheduler.blocking_ms = lambda: fsync_ms
        self.model = Model(self.server.runtime.partition_of)
        self.shown: dict[Key, set[int]] = {}
        self.next_offset = 0

    def run_turn(self, acts: list[Any]) -> None:
        self.shown = {}
        fetches: list[tuple[Pending, set[int] | None]] = []
        for name, *rest in acts:
            if name == "fetch":
                (key,) = rest
                allowed = None if self.model.is_unstable(key) else self._allowed(key)
                fetches.append((self.server.submit(fetch(key)), allowed))
            else:
                getattr(self, name)(*rest)
        self.server.advance(1_000)
        for answer, allowed in fetches:
            check_fetch(answer.answer, allowed)

    def _allowed(self, key: Key) -> set[int]:
        """What a fetch may see: plain commits beside it in the turn, or not yet."""
        return set(self.shown.setdefault(key, {self.model.offset(key)}))

    def _change(self, key: Key) -> None:
        self.shown.setdefault(key, {self.model.offset(key)})

    def _make_offsets(self, partition: int) -> TopicOffsets:
        self.next_offset += 1
        offsets = make_offset_columns([(partition, self.next_offset, -1, "")])
        return TopicOffsets(FOO, None, offsets)

    def commit(self, key: Key) -> None:
        self._change(key)
        self.next_offset += 1
        group, partition = key
        offsets = {partition: self.next_offset}
        self.server.submit(self.server.commit_command(group, "", None, "foo", offsets))
        self.model.write(key, self.next_offset, None)
        self.shown[key].add(self.next_offset)

    def pend(self, key: Key, producer_id: ProducerId) -> None:
        group, partition = key
        topics = (self._make_offsets(partition),)
        self.server.submit(TxnOffsetCommit(CALLER, group, producer_id, EPOCH, topics))
        self.model.write(key, self.next_offset, producer_id)

    def end(self, group: GroupId, producer_id: ProducerId, committed: bool) -> None:
        partition = self.server.runtime.partition_of(group)
        self.server.submit(WriteTxnMarkers(CALLER, partition, producer_id, EPOCH, 0, committed))
        self.model.end(producer_id, partition, committed)
        # The store is made to show all that came before a marker, and the marker.
        self.shown = {}

    def delete(self, key: Key) -> None:
        self._change(key)
        group, partition = key
        self.server.submit(DeleteTopicOffsets(INTERNAL, group, FOO, (partition,)))
        self.model.delete(key)
        self.shown[key].add(-1)

    def forget(self) -> None:
        """What is kept beside the log is gone, as where one of Kafka is imported."""
        for partition in map(LogPartition, range(self.server.store.partitions)):
            for prefix in encode_producer_prefixes(partition):
                kept = list(self.server.store.side(prefix))
                self.server.store.write([], [(key, None) for key, _ in kept])
        self.server.store.sync()
        self.server.restart()

    # ------------------------------------------------------------------------------- checks

    def check(self) -> None:
        for group in GROUPS:
            for partition in PARTITIONS:
                key = (group, partition)
                allowed = None if self.model.is_unstable(key) else {self.model.offset(key)}
                check_fetch(self.server.ask(fetch(key)), allowed)
                assert self.server.fetch(group, "foo", partition) == self.model.offset(key)
        self.check_store()
        live = [shard.open_transactions for shard in self.server.runtime.shards]
        self.server.restart()
        assert [shard.open_transactions for shard in self.server.runtime.shards] == live

    def check_store(self) -> None:
        store = self.server.store
        for partition in map(LogPartition, range(store.partitions)):
            fold = PartitionFold()
            for batch in store.read_log(partition):
                fold.apply(batch)
            assert [fold.latest[key] for key in sorted(fold.latest)] == list(
                store.latest(partition)
            )
            assert list(store.pending(partition)) == [
                (producer_id, fold.pending[producer_id][key])
                for producer_id in sorted(fold.pending)
                for key in sorted(fold.pending[producer_id])
            ]


def fetch(key: Key) -> Command:
    group, partition = key
    return OffsetFetch(CALLER, group, (TopicToFetch(FOO, None, (partition,)),), require_stable=True)


def check_fetch(answer: Any, allowed: set[int] | None) -> None:
    """``None`` where the offset is unstable."""
    assert isinstance(answer, OffsetFetchResponse), repr(answer)
    row = answer.topics[0].partitions[0]
    if allowed is None:
        assert (row.error, row.offset) == (UNSTABLE, -1)
    else:
        assert row.error is ErrorCode.NONE
        assert row.offset in allowed


@settings(max_examples=150)
@given(TURNS, st.sampled_from([0, 3]))
def test_transactions_are_what_the_model_says(turns: list[list[Any]], fsync_ms: int) -> None:
    machine = Machine(fsync_ms)
    for turn in turns:
        machine.run_turn(turn)
        machine.check()
    assert not machine.server.failures


PENDS = st.tuples(st.just("pend"), KEYS, PRODUCER)


@settings(max_examples=150)
@given(st.lists(st.lists(PENDS, min_size=1, max_size=2), min_size=2, max_size=4), TURNS)
def test_what_was_imported_open_is_open_since_the_same_time(
    before: list[list[Any]], turns: list[list[Any]]
) -> None:
    """Also when its first offsets are deleted: each restart finds the time that was live."""
    machine = Machine(fsync_ms=0)
    for turn in before:
        machine.run_turn(turn)
    machine.forget()
    for turn in turns:
        machine.run_turn(turn)
        machine.check()
    assert not machine.server.failures


@settings(max_examples=100)
@given(TURNS, st.sampled_from([0, 3]))
def test_what_nobody_ends_is_aborted_in_time(turns: list[list[Any]], fsync_ms: int) -> None:
    """After the timeout, the grace of the last restart and one interval; S15 and S16 hold on."""
    machine = Machine(fsync_ms)
    server, model = machine.server, machine.model
    for turn in turns:
        machine.run_turn(turn)
        machine.check()
    open_before = {
        (shard.partition, producer_id)
        for shard in server.runtime.shards
        for producer_id, _ in shard.open_transactions.producers()
    }
    timeout_ms = SETTINGS.transaction_max_timeout_ms
    server.advance(timeout_ms + 2 * INTERVAL_MS)
    assert not any(shard.open_transactions for shard in server.runtime.shards)
    assert server.runtime.stats.transactions_timed_out == len(open_before)
    model.pending.clear()
    machine.check()
    for partition, producer_id in open_before:
        for epoch, version in ((EPOCH, 0), (EPOCH + 1, 0), (EPOCH + 1, 2)):
            late = WriteTxnMarkers(CALLER, partition, producer_id, epoch, 0, True, version)
            assert error_name(server.ask(late)) == "INVALID_PRODUCER_EPOCH"
    machine.check()
    assert not server.failures


@settings(max_examples=100)
@given(TURNS, st.integers(0, 3), st.integers(0, 5))
def test_a_crash_leaves_what_the_log_says(
    turns: list[list[Any]], survivors: int, ran_ms: int
) -> None:
    """Writes are lost whole: a marker with what it made visible, or neither."""
    machine = Machine(fsync_ms=3)
    server = machine.server
    for turn in turns:
        for name, *rest in turn:
            if name != "fetch":
                getattr(machine, name)(*rest)
        server.advance(ran_ms)
        server.restart(min(survivors, server.store.unsynced_writes))
        machine.check_store()
        for shard in server.runtime.shards:
            waiting = {
                (producer_id, key)
                for producer_id, transaction in shard.open_transactions.producers()
                for key in transaction.epochs
            }
            stored = {
                (producer_id, decode_key(entry.key))
                for producer_id, entry in server.store.pending(shard.partition)
            }
            assert waiting == stored
