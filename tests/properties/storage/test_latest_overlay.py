"""The overlay of ``latest`` holds what a plain map would, whatever is noted, read and written."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from model.ids import LogPartition
from storage.log.latest_overlay import LatestOverlay, Slice
from storage.log.latest_rows import LatestRows
from storage.log_store import pack_latest, unpack_latest
from tests.support.storage.appends import offset_key

PARTITIONS = (LogPartition(0), LogPartition(1))
GROUPS = ("", "a", "ab")
KEYS = [offset_key(group, number) for group in GROUPS for number in range(3)]
SETS = [
    [offset_key(group, number) for number in numbers]
    for group in GROUPS
    for numbers in ((0, 1), (1, 2), (2, 1, 0))
]
"""Sets of keys that are committed again and again: always these objects."""
PARTITION = st.sampled_from(PARTITIONS)
Map = dict[bytes, bytes]


class Overlay(RuleBasedStateMachine):
    """An overlay over a map, beside what both come to."""

    def __init__(self) -> None:
        super().__init__()
        self.overlay = LatestOverlay()
        self.stored: dict[LogPartition, Map] = {number: {} for number in PARTITIONS}
        self.expected: dict[LogPartition, Map] = {number: {} for number in PARTITIONS}
        self.offset = 0
        self.slices: Iterator[Slice] | None = None

    def delete(self, partition: LogPartition, key: bytes) -> None:
        self.stored[partition].pop(key, None)
        self.expected[partition].pop(key, None)

    @rule(partition=PARTITION, keys=st.lists(st.sampled_from(KEYS), min_size=1, max_size=4))
    def note_entries(self, partition: LogPartition, keys: list[bytes]) -> None:
        self.note(partition, dict.fromkeys(keys, True))

    @rule(partition=PARTITION, pairs=st.dictionaries(st.sampled_from(KEYS), st.booleans()))
    def note(self, partition: LogPartition, pairs: dict[bytes, bool]) -> None:
        self.offset += 1
        packed = pack_latest(self.offset, 5, b"v")
        changes = {key: packed if is_live else None for key, is_live in pairs.items()}
        for key, entry in changes.items():
            if entry is None:
                self.delete(partition, key)
            else:
                self.expected[partition][key] = entry
        self.overlay.note(partition, changes)

    @rule(partition=PARTITION, keys=st.sampled_from(SETS))
    def note_rows(self, partition: LogPartition, keys: list[bytes]) -> None:
        values = np.full((len(keys), 4), self.offset % 251, np.uint8)
        rows = LatestRows(keys, self.offset, 5, [values[:1], values[1:]])
        for number, key in enumerate(keys):
            entry = pack_latest(self.offset + number, 5, values[number].tobytes())
            self.expected[partition][key] = entry
        self.offset += len(keys)
        self.overlay.note(partition, rows)

    @rule(partition=PARTITION, key=st.sampled_from(KEYS))
    def write_past_it(self, partition: LogPartition, key: bytes) -> None:
        self.offset += 1
        packed = pack_latest(self.offset, 5, b"w")
        self.stored[partition][key] = self.expected[partition][key] = packed
        self.overlay.forget(partition, [key])

    @precondition(lambda self: self.slices is None)
    @rule(keys_max=st.integers(1, 4))
    def freeze(self, keys_max: int) -> None:
        self.overlay.freeze()
        self.slices = self.overlay.frozen_slices(keys_max)

    @precondition(lambda self: self.slices is not None)
    @rule()
    def write_slice(self) -> None:
        assert self.slices is not None
        part = next(self.slices, None)
        if part is None:
            self.overlay.drop_frozen()
            self.slices = None
        else:
            self.stored[part.partition].update(part.find())

    @precondition(lambda self: self.slices is not None)
    @rule()
    def thaw(self) -> None:
        self.overlay.thaw()
        self.slices = None

    @rule(
        partition=PARTITION,
        how=st.sampled_from(["find", "get", "groups"]),
        key=st.sampled_from(KEYS),
        size=st.integers(0, 12),
    )
    def read(self, partition: LogPartition, how: str, key: bytes, size: int) -> None:
        """One rule, so that what nobody reads for some steps stays as it was noted."""
        stored, expected = self.stored[partition], self.expected[partition]
        prefix = key[:size]
        noted = self.overlay.find(partition, prefix if how == "find" else b"")
        match how:
            case "find":
                merged = {key: stored[key] for key in stored if key.startswith(prefix)} | noted
                assert merged == {key: expected[key] for key in expected if key.startswith(prefix)}
                assert self.overlay.has_any(partition, prefix) == bool(noted)
            case "get":
                found = self.overlay.get_many(
                    partition, KEYS, lambda keys: [stored.get(key) for key in keys]
                )
                assert found == [
                    unpack_latest(key, expected[key]) if key in expected else None for key in KEYS
                ]
            case _:
                groups = {key[: 4 + int.from_bytes(key[2:4], "big")] for key in noted}
                assert self.overlay.find_offset_groups(partition) == sorted(groups)

    def teardown(self) -> None:
        for partition in PARTITIONS:
            self.read(partition, "get", b"", 0)
        if self.slices is None:
            assert self.overlay.count == sum(len(self.overlay.find(p, b"")) for p in PARTITIONS)


Overlay.TestCase.settings = settings(
    max_examples=150, stateful_step_count=30, deadline=None, derandomize=True
)
TestOverlay = Overlay.TestCase
