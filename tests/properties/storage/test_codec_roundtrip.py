"""Whatever is encoded is decoded to itself, and whatever is decoded is encoded to its bytes."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from storage.codec.batch_encoding import encode_batch, reencode_batch
from storage.codec.batches import Batch, BatchRecord, decode_batch
from storage.codec.errors import CodecError
from storage.codec.foreign_schemas import FOREIGN_SCHEMAS
from storage.codec.kinds import Array, Bytes, FixedInt, Kind, String, Uuid
from storage.codec.record_codec import decode_key, decode_value, encode_key, encode_value
from storage.codec.record_fields import Field, Struct
from storage.codec.record_schemas import RECORD_SCHEMAS
from storage.codec.to_json import key_to_json, value_to_json
from tests.support.record_json import key_from_json, value_from_json

law = settings(max_examples=200)

SCHEMAS = {**RECORD_SCHEMAS, **FOREIGN_SCHEMAS}

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
UNKNOWN_TAGS = st.dictionaries(st.integers(2, 1 << 20), st.binary(max_size=200), max_size=3).map(
    lambda tags: tuple(sorted(tags.items()))
)


def values_of(kind: Kind, version: int, flexible: bool) -> st.SearchStrategy[Any]:
    match kind:
        case FixedInt(layout):
            low = 0 if layout.format[-1].isupper() else -(1 << 8 * layout.size - 1)
            return st.integers(low, low + (1 << 8 * layout.size) - 1)
        case String():
            return TEXT
        case Bytes():
            return st.binary(max_size=200)
        case Uuid():
            return st.binary(min_size=16, max_size=16)
        case Array(of):
            size = 200 if isinstance(of, FixedInt) else 3
            return st.lists(values_of(of, version, flexible), max_size=size).map(tuple)
        case Struct():
            arguments = [field_values(field, version, flexible) for field in kind.fields]
            if flexible:
                names = {"unknown_tags": UNKNOWN_TAGS}
                return st.builds(kind.cls, *arguments, **names)
            return st.builds(kind.cls, *arguments)
    raise AssertionError(kind)


def field_values(field: Field, version: int, flexible: bool) -> st.SearchStrategy[Any]:
    if not field.since <= version <= field.until:
        return st.just(field.default)
    strategy = values_of(field.kind, version, flexible)
    if field.tag is not None:
        strategy = st.just(field.default) | strategy
    return st.none() | strategy if field.nullable else strategy


KEYS = st.one_of([values_of(schema.key, 0, False) for schema in SCHEMAS.values()])
VALUES = st.one_of(
    [
        st.tuples(
            st.just(type_id),
            st.just(version),
            values_of(schema.value, version, version >= schema.value.flexible_since),
        )
        for type_id, schema in SCHEMAS.items()
        for version in range(schema.max_version + 1)
    ]
)
TYPES = st.sampled_from([*SCHEMAS])


@law
@given(KEYS)
def test_keys(key: Any) -> None:
    encoded = encode_key(key)
    assert decode_key(encoded) == key
    type_id = int.from_bytes(encoded[:2], "big")
    assert key_from_json(type_id, key_to_json(encoded)) == encoded


@law
@given(VALUES)
def test_values(drawn: tuple[int, int, Any]) -> None:
    type_id, version, value = drawn
    encoded = encode_value(value, version)
    assert decode_value(type_id, encoded) == (version, value)
    assert value_from_json(type_id, version, value_to_json(type_id, encoded)) == encoded


@law
@given(VALUES)
def test_hand_written_codecs_are_their_schemas(drawn: tuple[int, int, Any]) -> None:
    type_id, version, value = drawn
    out = bytearray(version.to_bytes(2, "big"))
    SCHEMAS[type_id].value.compile(version).write(out, value)
    assert encode_value(value, version) == out


@law
@given(VALUES, st.data())
def test_a_damaged_value_is_refused_or_read_as_its_schema_reads_it(
    drawn: tuple[int, int, Any], data: st.DataObject
) -> None:
    type_id, version, value = drawn
    damaged = bytearray(encode_value(value, version))
    position = data.draw(st.integers(2, len(damaged)))
    damaged[position : position + 1] = data.draw(st.binary(max_size=2))
    with suppress(CodecError):
        found = decode_value(type_id, bytes(damaged))[1]
        assert SCHEMAS[type_id].value.compile(version).read(bytes(damaged), 2)[0] == found


@law
@given(TYPES, st.integers(-1, 5), st.binary(max_size=60))
def test_any_bytes_are_refused_with_our_error(type_id: int, version: int, data: bytes) -> None:
    head = version.to_bytes(2, "big", signed=True)
    for decode in (decode_value, value_to_json):
        with suppress(CodecError):
            decode(type_id, head + data)
    with suppress(CodecError):
        assert encode_key(decode_key(type_id.to_bytes(2, "big") + data))[2:] == data


RECORDS = st.lists(
    st.tuples(st.binary(max_size=300), st.none() | st.binary(max_size=300)), min_size=1
)
TIMES = st.integers(0, 1 << 48)
HEADERS = st.lists(st.tuples(TEXT, st.none() | st.binary(max_size=9)), max_size=2).map(tuple)


@law
@given(st.integers(0, 1 << 62), RECORDS, TIMES, st.integers(0, 1 << 40), st.booleans())
def test_batches(
    base_offset: int,
    records: list[tuple[bytes, bytes | None]],
    timestamp_ms: int,
    producer_id: int,
    is_transactional: bool,
) -> None:
    encoded = encode_batch(
        base_offset,
        records,
        timestamp_ms,
        producer_id=producer_id,
        is_transactional=is_transactional,
    )
    batch = decode_batch(encoded)
    assert [(record.key, record.value) for record in batch.records] == records
    assert [r.offset for r in batch.records] == list(range(base_offset, batch.last_offset + 1))
    assert {record.timestamp for record in batch.records} == {timestamp_ms}
    assert (batch.producer_id, batch.is_transactional) == (producer_id, is_transactional)
    assert reencode_batch(batch) == encoded


@law
@given(
    st.lists(
        st.tuples(
            st.integers(1, 1000),
            TIMES,
            st.none() | st.binary(max_size=9),
            st.none() | st.binary(max_size=9),
            HEADERS,
        ),
        max_size=5,
    )
)
def test_batches_as_others_write_them(drawn: list[tuple[int, int, Any, Any, Any]]) -> None:
    offset = 99
    records = []
    for gap, timestamp, key, value, headers in drawn:
        offset += gap
        records.append(BatchRecord(offset, timestamp, key, value, headers))
    times = [record.timestamp for record in records] or [0]
    given_batch = Batch(
        *(100, offset + 5, 0, 0, 0, 0, times[0], max(times), -1, -1, -1, len(records)),
        records=tuple(records),
    )
    found = decode_batch(reencode_batch(given_batch))
    assert found.records == given_batch.records
    assert reencode_batch(found) == reencode_batch(given_batch)
