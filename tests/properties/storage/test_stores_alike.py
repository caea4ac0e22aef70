"""The store on RocksDB and the one in memory do the same, whatever is done to them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Generator
from itertools import islice
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from model.ids import LogOffset, LogPartition
from storage.log.trim import compute_trim_limit
from storage.log_store import PartitionAppend
from storage.rocks.rocks_opening import open_store
from tests.support.memory import MemoryLogStore
from tests.support.storage.appends import (
    compact,
    make_append,
    mark_all,
    offset_key,
    write_checkpoint,
)
from tests.support.trimming import trim_once

PARTITIONS = 2
KEYS = [
    *(offset_key(group, number) for group in ("", "a", "ab", "\u00fc") for number in range(2)),
    b"\x00\x00" + offset_key("a", 1)[2:],
    b"\x00\x02\x00\x01a",
    b"\x00\x03\x00\x01a",
    b"",
    b"\xff",
    b"\xff\xff",
]
PAIRS = st.lists(
    st.tuples(st.sampled_from(KEYS), st.none() | st.binary(max_size=20)), min_size=1, max_size=4
)
SIDE = st.lists(
    st.tuples(st.sampled_from([b"\x01a", b"\x01b", b"\x02"]), st.none() | st.binary(max_size=9)),
    max_size=2,
)
CAUSES = st.lists(
    st.tuples(st.sampled_from([b"a1", b"a2", b"b1"]), st.none() | st.binary(max_size=9)),
    max_size=2,
)
PARTITION = st.integers(0, PARTITIONS - 1)


class Stores(RuleBasedStateMachine):
    """Both stores, side by side."""

    @initialize()
    def open(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.rocks = open_store(self.folder, partitions=PARTITIONS, cluster_id="C" * 22)
        self.memory = MemoryLogStore(PARTITIONS, "C" * 22)
        self.checkpoints: list[Generator[bool]] | None = None

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.rocks.close()
            shutil.rmtree(self.folder)

    @rule(batches=st.lists(st.tuples(PARTITION, PAIRS), max_size=3), side=SIDE, causes=CAUSES)
    def write(
        self,
        batches: list[tuple[int, list[tuple[bytes, bytes | None]]]],
        side: list[tuple[bytes, bytes | None]],
        causes: list[tuple[bytes, bytes | None]],
    ) -> None:
        ends = [self.memory.next_offset(LogPartition(p)) for p in range(PARTITIONS)]
        appends: list[PartitionAppend] = []
        for partition, pairs in batches:
            appends.append(make_append(partition, ends[partition], pairs))
            ends[partition] = LogOffset(ends[partition] + len(pairs))
        self.rocks.write(appends, side, causes)
        self.memory.write(appends, side, causes)

    @rule()
    def mark(self) -> None:
        mark_all(self.rocks)
        mark_all(self.memory)

    @rule()
    def sync_watermark(self) -> None:
        self.rocks.sync_watermark()
        self.memory.sync_watermark()

    @precondition(lambda self: self.checkpoints is None)
    @rule(keys_max=st.integers(1, 3))
    def begin_checkpoint(self, keys_max: int) -> None:
        stores = (self.rocks, self.memory)
        self.checkpoints = [store.write_checkpoint(keys_max) for store in stores]

    @precondition(lambda self: self.checkpoints is not None)
    @rule(steps=st.integers(1, 5))
    def go_on_with_checkpoint(self, steps: int) -> None:
        done = [list(islice(checkpoint, steps)) for checkpoint in self.checkpoints]
        assert done[0] == done[1]
        if len(done[0]) < steps:
            self.checkpoints = None

    @precondition(lambda self: self.checkpoints is not None)
    @rule()
    def abandon_checkpoint(self) -> None:
        for checkpoint in self.checkpoints:
            checkpoint.close()
        self.checkpoints = None

    @rule()
    def die(self) -> None:
        """The process is killed: nothing written is lost, nothing more is."""
        killed = self.folder.with_name(f"{self.folder.name}.killed")
        shutil.copytree(self.folder, killed)
        self.rocks.close()
        shutil.rmtree(self.folder)
        killed.rename(self.folder)
        self.checkpoints = None
        self.rocks = open_store(self.folder, partitions=PARTITIONS)
        self.memory = self.memory.crash(self.memory.unsynced_writes)
        write_checkpoint(self.memory)

    @rule()
    def reopen(self) -> None:
        self.checkpoints = None
        self.rocks.close()
        self.memory.close()
        self.rocks = open_store(self.folder, partitions=99)
        self.memory = self.memory.crash()

    @rule(partition=PARTITION, bytes_max=st.sampled_from((1, 200)))
    def trim(self, partition: int, bytes_max: int) -> None:
        number = LogPartition(partition)
        limit = compute_trim_limit(self.memory, number)
        assert compute_trim_limit(self.rocks, number) == limit
        done = trim_once(self.memory, number, limit, bytes_max)
        assert trim_once(self.rocks, number, limit, bytes_max) == done

    @rule(partition=PARTITION, start=st.integers(0, 12))
    def read_from(self, partition: int, start: int) -> None:
        where = LogPartition(partition), LogOffset(start)
        assert list(self.rocks.read_log(*where)) == list(self.memory.read_log(*where))

    @rule(partition=PARTITION, prefix=st.sampled_from(KEYS), size=st.integers(0, 6))
    def scan(self, partition: int, prefix: bytes, size: int) -> None:
        where = LogPartition(partition), prefix[:size]
        assert list(self.rocks.latest(*where)) == list(self.memory.latest(*where))

    @invariant()
    def they_are_alike(self) -> None:
        if not hasattr(self, "folder"):
            return
        for partition in map(LogPartition, range(PARTITIONS)):
            latest = list(self.memory.latest(partition))
            assert latest == compact(self.memory.read_log(partition))
            assert list(self.rocks.latest(partition)) == latest
            assert list(self.rocks.read_log(partition)) == list(self.memory.read_log(partition))
            assert self.rocks.next_offset(partition) == self.memory.next_offset(partition)
            found = self.rocks.get_many_latest(partition, KEYS)
            assert found == self.memory.get_many_latest(partition, KEYS)
            assert found == [self.rocks.get_latest(partition, key) for key in KEYS]
            kept = list(self.memory.kept(partition))
            assert list(self.rocks.kept(partition)) == kept
            keys = [key for key, _ in kept] + KEYS
            assert self.rocks.get_kept(partition, keys) == self.memory.get_kept(partition, keys)
            for key in KEYS:
                has = self.memory.has_latest(partition, key)
                assert self.rocks.has_latest(partition, key) == has
            position = self.memory.checkpoint_offset(partition)
            assert self.rocks.checkpoint_offset(partition) == position
            assert self.rocks.durable_offset(partition) == self.memory.durable_offset(partition)
            groups = list(self.rocks.offset_group_ids(partition))
            assert groups == list(self.memory.offset_group_ids(partition))
        assert self.rocks.unsettled_keys == self.memory.unsettled_keys
        assert list(self.rocks.side()) == list(self.memory.side())
        for key in (b"a2", b"b", b"c"):
            assert list(self.rocks.causes(key)) == list(self.memory.causes(key))
            before = list(self.memory.causes_before(key, b"a"))
            assert list(self.rocks.causes_before(key, b"a")) == before


Stores.TestCase.settings = settings(
    max_examples=30, stateful_step_count=25, deadline=None, derandomize=True
)
TestStores = Stores.TestCase
