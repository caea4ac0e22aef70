"""Adds the offset commits that only the codec can decode to ``commit_columns``."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from model.ids import ZERO_TOPIC_ID
from model.log.records import LegacyOffsetCommitValue, OffsetCommitValue
from pipeline.decoding.commit_columns import CommitColumns
from pipeline.decoding.json_text import dump
from storage.codec.errors import CodecError
from storage.codec.kinds import uuid_to_json
from storage.codec.record_codec import decode_value
from storage.codec.to_json import key_to_json, value_to_json
from storage.columnar.batch_columns import Int64Array
from storage.columnar.record_columns import RecordColumns


@dataclass(frozen=True, slots=True)
class RareCommits:
    """Decoded strings, by row. ``key_json`` and ``value_json`` are those of unknown fields."""

    metadata: dict[int, str] = field(default_factory=dict)
    topic_ids: dict[int, str] = field(default_factory=dict)
    key_json: dict[int, str] = field(default_factory=dict)
    value_json: dict[int, str] = field(default_factory=dict)
    problems: dict[int, str] = field(default_factory=dict)


def read_rare_commits(
    records: RecordColumns, types: Int64Array, commits: CommitColumns
) -> RareCommits:
    """Decode the commits in ``are_rare``, and write their numbers into ``commits``."""
    rare = RareCommits()
    data = records.data
    for row in np.flatnonzero(commits.are_rare).tolist():
        start, type_id = int(records.value_starts[row]), int(types[row])
        value = data[start : start + int(records.value_lengths[row])]
        try:
            decoded = decode_value(type_id, value)[1]
            if not isinstance(decoded, OffsetCommitValue | LegacyOffsetCommitValue):
                raise CodecError("this is not the value of an offset commit")
            _put(commits, rare, row, decoded)
            if isinstance(decoded, OffsetCommitValue) and decoded.unknown_tags:
                key_start = int(records.key_starts[row])
                key = data[key_start : key_start + int(records.key_lengths[row])]
                rare.key_json[row] = dump(key_to_json(key))
                rare.value_json[row] = dump(value_to_json(type_id, value))
        except CodecError as error:
            rare.problems[row] = str(error)
    return rare


def _put(
    commits: CommitColumns,
    rare: RareCommits,
    row: int,
    decoded: OffsetCommitValue | LegacyOffsetCommitValue,
) -> None:
    commits.are_read[row] = True
    commits.offsets[row] = decoded.offset
    commits.commit_timestamps[row] = decoded.commit_timestamp
    rare.metadata[row] = decoded.metadata
    if isinstance(decoded, OffsetCommitValue):
        commits.leader_epochs[row] = decoded.leader_epoch
        commits.have_epoch[row] = decoded.leader_epoch >= 0
        commits.expire_timestamps[row] = decoded.expire_timestamp
        commits.have_expiry[row] = decoded.expire_timestamp != -1
        if decoded.topic_id != ZERO_TOPIC_ID:
            rare.topic_ids[row] = uuid_to_json(decoded.topic_id)


def put_texts(array: pa.Array, texts: dict[int, str]) -> pa.Array:
    """The array with the given texts in their rows."""
    if not texts:
        return array
    rows = sorted(texts)
    mask = np.zeros(len(array), dtype=bool)
    mask[rows] = True
    values = pa.array([texts[row] for row in rows], pa.string())
    return pc.replace_with_mask(array, pa.array(mask), values)
