"""Keys and values of known types must decode, and encode to the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from model.ids import GroupId
from model.log.records import Record
from storage.codec.batches import BatchRecord, decode_marker
from storage.codec.errors import CodecError
from storage.codec.record_codec import decode_key, decode_value, encode_key, encode_value
from storage.columnar.batch_columns import BatchColumns, BoolArray, Int64Array
from storage.columnar.record_columns import RecordColumns
from storage.transfer.partition_placement import read_group_id
from storage.verify.violation import LogViolation

_OFFSET_TYPE = 1
_LEGACY_TYPE = b"\x00\x00"
_LEGACY_VERSION_MAX = 1
"""Kafka stopped writing keys of type 0 before it had values of version 2."""

_TYPE_SIZE = 2
_CONTROL_KEY_SIZE = 4
_MARKER_SIZE = 6

_V4_WITH_ID = 42
_V4_WITHOUT_ID = 24
_V4_METADATA_AT = 14
_V4_TAGS_AT = 23
_V4_ID_AT = 26

CheckGroup = Callable[[GroupId], str | None]
"""Why a group cannot be in this partition, or ``None``."""


class RecordCheck:
    """Checks the records of one partition, block by block."""

    def __init__(self, check_group: CheckGroup | None = None) -> None:
        self._check_group = check_group
        self._known_keys: set[bytes] = set()
        self._known_groups: set[GroupId] = set()

    def check(self, batches: BatchColumns, records: RecordColumns) -> Iterator[tuple[int, Record]]:
        """The records that are not offsets, tombstones included, each with its index.

        Raise ``LogViolation`` at the first violation in log order.
        """
        keys = records.keys()
        is_control = batches.are_control[records.batches]
        types = _read_types(records)
        is_offset = (types >= 0) & (types <= _OFFSET_TYPE)
        is_simple = is_offset & ((records.value_lengths < 0) | _find_plain_commits(records, types))
        new_keys = self._find_new_keys(keys)
        wanted = ~is_simple | is_control
        for index in new_keys.values():
            wanted[index] = True
        for index in np.flatnonzero(wanted).tolist():
            if is_control[index]:
                self._check_marker(records, index)
                continue
            record = self._check_record(records, index, keys[index], bool(is_simple[index]))
            if record is not None and not is_offset[index]:
                yield index, record

    def _find_new_keys(self, keys: list[bytes]) -> dict[bytes, int]:
        """Keys not seen before, with the index of their first record."""
        found = dict(zip(reversed(keys), range(len(keys) - 1, -1, -1), strict=True))
        for key in found.keys() & self._known_keys:
            del found[key]
        return found

    def _check_record(
        self, records: RecordColumns, index: int, key: bytes, value_is_known: bool
    ) -> Record | None:
        offset = int(records.offsets[index])
        if records.key_lengths[index] < 0:
            raise LogViolation("records", "a record has no key", offset)
        try:
            decoded = decode_key(key)
            if key not in self._known_keys:
                self._check_key(key, encode_key(decoded), offset)
            if value_is_known:
                return None
            value = _read_value(records, index)
            if value is None:
                return Record(decoded, None)
            version, decoded_value = decode_value(int.from_bytes(key[:2], "big"), value)
            if key[:2] == _LEGACY_TYPE and version > _LEGACY_VERSION_MAX:
                why = f"a value of version {version} has a key of type 0, which is older"
                raise LogViolation("records", why, offset, key)
            same = encode_value(decoded_value, version) == value
        except CodecError as error:
            raise LogViolation("records", str(error), offset, key) from None
        except (UnicodeError, ValueError) as error:
            raise LogViolation(
                "records", f"the record cannot be decoded: {error}", offset, key
            ) from None
        if not same:
            raise LogViolation(
                "records", "encoding the decoded value gives other bytes", offset, key
            )
        return Record(decoded, decoded_value)

    def _check_key(self, key: bytes, encoded: bytes, offset: int) -> None:
        if encoded != key:
            raise LogViolation("records", "encoding the decoded key gives other bytes", offset, key)
        self._known_keys.add(key)
        group = read_group_id(key)
        if group is None or self._check_group is None or group in self._known_groups:
            return
        why = self._check_group(group)
        if why is not None:
            raise LogViolation("placement", why, offset, key)
        self._known_groups.add(group)

    def _check_marker(self, records: RecordColumns, index: int) -> None:
        offset = int(records.offsets[index])
        start, length = int(records.key_starts[index]), int(records.key_lengths[index])
        key = records.data[start : start + max(length, 0)]
        value = _read_value(records, index) or b""
        try:
            marker = decode_marker(BatchRecord(offset, 0, key, value))
        except CodecError as error:
            raise LogViolation("markers", str(error), offset, key) from None
        is_first_version = key[:_TYPE_SIZE] == value[:_TYPE_SIZE] == b"\0\0"
        sizes = len(key), len(value)
        if marker is None or (is_first_version and sizes != (_CONTROL_KEY_SIZE, _MARKER_SIZE)):
            raise LogViolation(
                "markers", "a control record is not a transaction marker", offset, key
            )


def _read_value(records: RecordColumns, index: int) -> bytes | None:
    start, length = int(records.value_starts[index]), int(records.value_lengths[index])
    return None if length < 0 else records.data[start : start + length]


def _read_types(records: RecordColumns) -> Int64Array:
    """The record type of each key, -1 if the key is too short for one."""
    view = np.frombuffer(records.data, dtype=np.uint8)
    high = view[records.key_starts].astype(np.int64)
    low = view[records.key_starts + 1].astype(np.int64)
    types: Int64Array = np.where(records.key_lengths >= _TYPE_SIZE, high << 8 | low, -1)
    return types


def _find_plain_commits(records: RecordColumns, types: Int64Array) -> BoolArray:
    """Which values are of type 1, v4, without metadata, in the one encoding of their fields.

    They may have a topic id; the other fields may have any value.
    """
    found = np.zeros(len(types), dtype=bool)
    lengths = records.value_lengths
    sized = (lengths == _V4_WITH_ID) | (lengths == _V4_WITHOUT_ID)
    candidates = np.flatnonzero((types == _OFFSET_TYPE) & sized)
    if not candidates.size:
        return found
    view = np.frombuffer(records.data, dtype=np.uint8)
    starts = records.value_starts[candidates]
    has_id = lengths[candidates] == _V4_WITH_ID

    def byte(at: int) -> npt.NDArray[np.uint8]:
        return view[starts + at]

    plain = (byte(0) == 0) & (byte(1) == 4) & (byte(_V4_METADATA_AT) == 1)
    plain &= byte(_V4_TAGS_AT) == has_id
    ids = starts[has_id]
    tag = (view[ids + _V4_TAGS_AT + 1] == 0) & (view[ids + _V4_TAGS_AT + 2] == 16)
    is_zero = np.ones(len(ids), dtype=bool)
    for at in range(16):
        is_zero &= view[ids + _V4_ID_AT + at] == 0
    plain[has_id] &= tag & ~is_zero
    found[candidates] = plain
    return found
