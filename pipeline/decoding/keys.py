"""The keys of many records as arrays: types, groups, and members or topics.

Every key of Kafka 4.3 is an int16 type, the group, and for some types one more string: the topic of
an offset, followed by its partition, a member, or a regular expression.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.decoding.byte_slices import Slices
from pipeline.decoding.integers import read_int16s, read_int32s
from storage.codec.foreign_schemas import FOREIGN_SCHEMAS
from storage.codec.record_schemas import RECORD_SCHEMAS
from storage.columnar.batch_columns import BoolArray, Int64Array
from storage.columnar.record_columns import RecordColumns

NO_TYPE = -1
"""The type of markers, and of keys too short for one."""

_SCHEMAS = {**RECORD_SCHEMAS, **FOREIGN_SCHEMAS}
KNOWN_TYPES = np.array(sorted(_SCHEMAS), dtype=np.int64)
MAX_VERSIONS = np.array([_SCHEMAS[int(kind)].max_version for kind in KNOWN_TYPES], dtype=np.int64)
_HAVE_MEMBER = np.array(
    [
        type_id
        for type_id, schema in _SCHEMAS.items()
        if any(field.attr == "member_id" for field in schema.key.fields)
    ],
    dtype=np.int64,
)
_HAVE_TWO = np.array(
    [type_id for type_id, schema in _SCHEMAS.items() if len(schema.key.fields) == 2],
    dtype=np.int64,
)


@dataclass(frozen=True, slots=True, eq=False)
class KeyColumns:
    """One entry per record: ``types`` (``NO_TYPE`` for none) and the fields of the key.

    ``are_wrong`` marks malformed keys of known types; their fields are null. ``are_offsets`` marks
    offset commits with a valid key.
    """

    types: Int64Array
    are_known: BoolArray
    are_wrong: BoolArray
    are_offsets: BoolArray
    groups: Slices
    members: Slices
    topics: Slices
    topic_partitions: Int64Array


def read_keys(records: RecordColumns, are_control: BoolArray) -> KeyColumns:
    """The keys of records, some of which are markers."""
    data, starts = records.data, records.key_starts
    ends = starts + np.maximum(records.key_lengths, 0)
    have_type = (records.key_lengths >= 2) & ~are_control
    types = np.where(have_type, read_int16s(data, np.where(have_type, starts, 0)), NO_TYPE)
    are_known = have_type & np.isin(types, KNOWN_TYPES)
    are_offsets = (types == 0) | (types == 1)
    have_second = are_offsets | np.isin(types, _HAVE_TWO)

    group_starts, group_ends, are_right = _read_string(data, starts + 2, ends, are_known)
    second_starts, second_ends, have_string = _read_string(
        data, group_ends, ends, are_right & have_second
    )
    last = np.where(have_second, second_ends, group_ends)
    are_right &= have_string | ~have_second
    are_right &= last + np.where(are_offsets, 4, 0) == ends
    are_offsets &= are_right
    return KeyColumns(
        types,
        are_known,
        are_known & ~are_right | (types == NO_TYPE) & ~are_control,
        are_offsets,
        Slices(group_starts, group_ends - group_starts, are_right),
        _compute_slices(second_starts, second_ends, are_right & np.isin(types, _HAVE_MEMBER)),
        _compute_slices(second_starts, second_ends, are_offsets),
        read_int32s(data, np.where(are_offsets, last, 0)),
    )


def _read_string(
    data: bytes, positions: Int64Array, ends: Int64Array, are_there: BoolArray
) -> tuple[Int64Array, Int64Array, BoolArray]:
    """The starts and ends of strings with an int16 length, and whether they fit."""
    fit = are_there & (positions + 2 <= ends)
    lengths = np.where(fit, read_int16s(data, np.where(fit, positions, 0)), 0)
    starts = positions + 2
    fit &= (lengths >= 0) & (starts + lengths <= ends)
    return starts, starts + np.where(fit, lengths, 0), fit


def _compute_slices(starts: Int64Array, ends: Int64Array, are_there: BoolArray) -> Slices:
    return Slices(starts, ends - starts, are_there)
