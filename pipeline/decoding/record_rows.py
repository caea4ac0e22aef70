"""Converts the records of a block to rows of ``schema.RECORDS``, or of a subset of its columns."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
import pyarrow as pa

from model.log.records import RecordType
from pipeline.decoding.arrays import make_int32s, make_int64s, make_names, make_timestamps
from pipeline.decoding.byte_slices import Slices, make_binary, make_text
from pipeline.decoding.commit_columns import CommitColumns, read_commits
from pipeline.decoding.integers import read_int16s
from pipeline.decoding.json_text import Problems, make_key_texts, make_value_texts
from pipeline.decoding.keys import KNOWN_TYPES, MAX_VERSIONS, KeyColumns, read_keys
from pipeline.decoding.markers import MarkerRow, read_marker
from pipeline.decoding.rare_commits import RareCommits, put_texts, read_rare_commits
from pipeline.schema import BAD_KEY, BAD_VALUE, UNKNOWN_TYPE, UNKNOWN_VERSION
from storage.codec.errors import CodecError
from storage.codec.kinds import uuid_to_json
from storage.codec.record_codec import decode_key
from storage.columnar.batch_columns import BatchColumns, BoolArray, Int64Array
from storage.columnar.record_columns import RecordColumns

_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_TYPE_NAMES = tuple(RecordType(int(kind)).name for kind in KNOWN_TYPES)


class RecordRows:
    """The records of a block as columns, each computed on demand."""

    def __init__(self, partition: int, batches: BatchColumns, records: RecordColumns) -> None:
        self._partition = partition
        self._batches = batches
        self._records = records
        self._count = len(records.offsets)
        self._are_control: BoolArray = batches.are_control[records.batches]
        self._makers = self._compute_makers()

    def make(self, schema: pa.Schema) -> pa.RecordBatch:
        """All rows with the columns of ``schema``, a subset of ``schema.RECORDS``."""
        arrays = [self._makers[name]() for name in schema.names]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _compute_makers(self) -> dict[str, Callable[[], pa.Array]]:
        batches, records = self._batches, self._records
        return {
            "partition": lambda: make_int32s(np.full(self._count, self._partition)),
            "offset": lambda: make_int64s(records.offsets),
            "timestamp": lambda: make_timestamps(records.timestamps),
            "timestamp_type": lambda: make_int32s(self._of_batch(batches.are_log_append_time)),
            "base_offset": lambda: make_int64s(self._of_batch(batches.base_offsets)),
            "partition_leader_epoch": lambda: make_int32s(self._of_batch(batches.leader_epochs)),
            "compression": lambda: make_names(_CODECS, self._of_batch(batches.compressions)),
            "producer_id": lambda: make_int64s(self._of_batch(batches.producer_ids)),
            "producer_epoch": lambda: make_int32s(self._of_batch(batches.producer_epochs)),
            "is_transactional": lambda: self._make_flags(batches.are_transactional),
            "is_control": lambda: pa.array(self._are_control),
            "key": lambda: make_binary(records.data, self._key_slices),
            "value": lambda: make_binary(records.data, self._value_slices),
            "type_id": lambda: make_int32s(self._keys.types, self._keys.types >= 0),
            "record_type": self._make_record_type,
            "value_version": lambda: make_int32s(self._versions, self._have_version),
            "is_tombstone": lambda: pa.array((records.value_lengths < 0) & ~self._are_control),
            "group_id": lambda: self._groups[0],
            "member_id": lambda: self._members[0],
            "topic": lambda: self._topics[0],
            "topic_partition": lambda: make_int32s(
                self._keys.topic_partitions, self._keys.are_offsets
            ),
            "committed_offset": lambda: make_int64s(self._commits.offsets, self._commits.are_read),
            "leader_epoch": lambda: make_int32s(
                self._commits.leader_epochs, self._commits.have_epoch
            ),
            "metadata": lambda: self._metadata[0],
            "commit_timestamp": lambda: make_timestamps(
                self._commits.commit_timestamps, self._commits.are_read
            ),
            "expire_timestamp": lambda: make_timestamps(
                self._commits.expire_timestamps, self._commits.have_expiry
            ),
            "topic_id": self._make_topic_id,
            "key_json": lambda: put_texts(self._key_texts[0], self._rare.key_json),
            "value_json": self._make_value_json,
            "problem": lambda: self._problem_columns[0],
            "problem_detail": lambda: self._problem_columns[1],
        }

    def _of_batch(self, column: Int64Array | BoolArray) -> Int64Array:
        return column[self._records.batches].astype(np.int64)

    def _make_flags(self, column: BoolArray) -> pa.Array:
        return pa.array(column[self._records.batches])

    # ------------------------------------------------------------------------- keys

    @cached_property
    def _keys(self) -> KeyColumns:
        return read_keys(self._records, self._are_control)

    @cached_property
    def _key_slices(self) -> Slices:
        records = self._records
        return Slices(records.key_starts, records.key_lengths, records.key_lengths >= 0)

    @cached_property
    def _groups(self) -> tuple[pa.Array, BoolArray]:
        return make_text(self._records.data, self._keys.groups)

    @cached_property
    def _members(self) -> tuple[pa.Array, BoolArray]:
        return make_text(self._records.data, self._keys.members)

    @cached_property
    def _topics(self) -> tuple[pa.Array, BoolArray]:
        return make_text(self._records.data, self._keys.topics)

    @cached_property
    def _key_texts(self) -> tuple[pa.Array, Problems]:
        keys, records = self._keys, self._records
        wanted = keys.are_known & ~keys.are_wrong & ~keys.are_offsets
        slices = Slices(records.key_starts, records.key_lengths, wanted)
        return make_key_texts(records.data, slices)

    @cached_property
    def _type_indices(self) -> Int64Array:
        """The index of known types in the table of types."""
        types = np.where(self._keys.are_known, self._keys.types, 0)
        return np.searchsorted(KNOWN_TYPES, types).astype(np.int64)

    @cached_property
    def _markers(self) -> dict[int, MarkerRow]:
        return {row: read_marker(self._records, row) for row in _find_rows(self._are_control)}

    def _make_record_type(self) -> pa.Array:
        indices = np.where(self._keys.are_known, self._type_indices, len(_TYPE_NAMES))
        names = make_names((*_TYPE_NAMES, None), indices)
        return put_texts(names, {row: found.record_type for row, found in self._markers.items()})

    # ----------------------------------------------------------------------- values

    @cached_property
    def _value_slices(self) -> Slices:
        records = self._records
        return Slices(records.value_starts, records.value_lengths, records.value_lengths >= 0)

    @cached_property
    def _have_version(self) -> BoolArray:
        return (self._records.value_lengths >= 2) & (self._keys.types >= 0)

    @cached_property
    def _versions(self) -> Int64Array:
        records = self._records
        starts = np.where(self._have_version, records.value_starts, 0)
        return read_int16s(records.data, starts)

    @cached_property
    def _are_readable(self) -> BoolArray:
        """Whether the value has a known type and version, and its key is valid."""
        keys, versions = self._keys, self._versions
        right = self._have_version & keys.are_known & ~keys.are_wrong
        return right & (versions >= 0) & (versions <= MAX_VERSIONS[self._type_indices])

    @cached_property
    def _all_commits(self) -> tuple[CommitColumns, RareCommits]:
        keys = self._keys
        are_commits = self._are_readable & keys.are_offsets
        commits = read_commits(self._records, are_commits, self._versions)
        return commits, read_rare_commits(self._records, keys.types, commits)

    @property
    def _commits(self) -> CommitColumns:
        return self._all_commits[0]

    @property
    def _rare(self) -> RareCommits:
        return self._all_commits[1]

    @cached_property
    def _metadata(self) -> tuple[pa.Array, BoolArray]:
        slices = self._commits.metadata
        there = slices.are_there & self._commits.are_read
        metadata, are_wrong = make_text(
            self._records.data, Slices(slices.starts, slices.lengths, there & (slices.lengths >= 0))
        )
        return put_texts(metadata, self._rare.metadata), are_wrong

    def _make_topic_id(self) -> pa.Array:
        """Few topics have many commits, so each id is formatted once."""
        ids = make_binary(self._records.data, self._commits.topic_ids).dictionary_encode()
        names = [uuid_to_json(topic_id) for topic_id in ids.dictionary.to_pylist()]
        texts = pa.array(names, pa.string()).take(ids.indices)
        return put_texts(texts, self._rare.topic_ids)

    @cached_property
    def _value_texts(self) -> tuple[pa.Array, Problems]:
        records = self._records
        wanted = self._are_readable & ~self._keys.are_offsets
        slices = Slices(records.value_starts, records.value_lengths, wanted)
        return make_value_texts(records.data, slices, self._keys.types)

    def _make_value_json(self) -> pa.Array:
        markers = {
            row: found.value_json
            for row, found in self._markers.items()
            if found.value_json is not None
        }
        return put_texts(self._value_texts[0], {**self._rare.value_json, **markers})

    # --------------------------------------------------------------------- problems

    @cached_property
    def _problem_columns(self) -> tuple[pa.Array, pa.Array]:
        found = self._find_problems()
        if not found:
            return pa.nulls(self._count, pa.string()), pa.nulls(self._count, pa.string())
        words: list[str | None] = [None] * self._count
        details: list[str | None] = [None] * self._count
        for row, (problem, detail) in found.items():
            words[row], details[row] = problem, detail
        return pa.array(words, pa.string()), pa.array(details, pa.string())

    def _find_problems(self) -> dict[int, tuple[str, str]]:
        keys = self._keys
        found = {row: (BAD_VALUE, detail) for row, detail in self._find_bad_values().items()}
        for row in _find_rows(keys.are_known & self._have_version & ~self._are_readable):
            version = int(self._versions[row])
            name = RecordType(int(keys.types[row])).name
            problem = BAD_VALUE if version < 0 else UNKNOWN_VERSION
            found[row] = (problem, f"{name} has no value of version {version}")
        for row in _find_rows((keys.types >= 0) & ~keys.are_known):
            found[row] = (UNKNOWN_TYPE, f"record type {keys.types[row]} is unknown")
        are_wrong = keys.are_wrong | self._groups[1] | self._members[1] | self._topics[1]
        for row in _find_rows(are_wrong):
            found[row] = (BAD_KEY, self._explain_key(row))
        for row, detail in self._key_texts[1].items():
            found[row] = (BAD_KEY, detail)
        return found

    def _find_bad_values(self) -> Problems:
        lengths = self._records.value_lengths
        are_short = (lengths >= 0) & (lengths < 2) & ~self._are_control
        problems = {
            row: f"a record value has at least 2 bytes, not {lengths[row]}"
            for row in _find_rows(are_short)
        }
        for row in _find_rows(self._metadata[1]):
            problems[row] = "the metadata of the offset is not UTF-8"
        for row, marker in self._markers.items():
            if marker.problem is not None:
                problems[row] = marker.problem
        return {**problems, **self._rare.problems, **self._value_texts[1]}

    def _explain_key(self, row: int) -> str:
        records = self._records
        start, length = int(records.key_starts[row]), int(records.key_lengths[row])
        if length < 0:
            return "the key is null"
        try:
            decode_key(records.data[start : start + length])
        except CodecError as error:
            return str(error)
        return "the key does not match its type"


def _find_rows(mask: BoolArray) -> list[int]:
    rows: list[int] = np.flatnonzero(mask).tolist()
    return rows


def make_damage_row(
    schema: pa.Schema, partition: int, offset: int, data: bytes, problem: str, detail: str
) -> pa.RecordBatch:
    """The row that reports unreadable bytes."""
    known = {
        "partition": partition,
        "offset": offset,
        "value": data,
        "problem": problem,
        "problem_detail": detail,
    }
    arrays = [pa.array([known.get(field.name)], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
