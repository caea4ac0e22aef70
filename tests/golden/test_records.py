"""Every record that a real Kafka 4.3.0 wrote: bytes, decoded, as Kafka's JSON, and back."""

from __future__ import annotations

from typing import Any

import pytest

from storage.codec.batch_encoding import encode_marker
from storage.codec.batches import Batch, BatchRecord, decode_marker
from storage.codec.record_codec import decode_key, decode_value, encode_key, encode_value
from storage.codec.to_json import compute_type_name, key_to_json, value_to_json
from storage.log.compression import decompress
from tests.support.batches import decode_batches
from tests.support.record_json import key_from_json, value_from_json
from tests.support.storage.golden import control_records, filled_records, logged_records, segments

RECORDS = 6_144
CONTROL_RECORDS = 20


def describe(record: BatchRecord) -> dict[str, Any]:
    """A record as Kafka's own programs showed it."""
    assert record.key is not None
    type_id = int.from_bytes(record.key[:2], "big")
    shown: dict[str, Any] = {
        "typeId": type_id,
        "type": compute_type_name(type_id),
        "keyJson": key_to_json(record.key),
    }
    if record.value is not None:
        shown["valueVersion"] = int.from_bytes(record.value[:2], "big")
        shown["valueJson"] = value_to_json(type_id, record.value)
    return shown


def encode_again(shown: dict[str, Any]) -> tuple[bytes, bytes | None]:
    key = key_from_json(shown["typeId"], shown["keyJson"])
    if "valueJson" not in shown:
        return key, None
    return key, value_from_json(shown["typeId"], shown["valueVersion"], shown["valueJson"])


def decode_and_encode(record: BatchRecord) -> tuple[bytes, bytes | None]:
    """Through the model's records."""
    assert record.key is not None
    key = encode_key(decode_key(record.key))
    if record.value is None:
        return key, None
    type_id = int.from_bytes(record.key[:2], "big")
    version, value = decode_value(type_id, record.value)
    return key, encode_value(value, version)


def test_every_record_of_the_log() -> None:
    lines = {(line["partition"], line["offset"]): line for line in logged_records()}
    seen = 0
    for partition, data in segments().items():
        for batch in decode_batches(data, decompress=decompress):
            for record in () if batch.is_control else batch.records:
                line = lines.pop((partition, record.offset))
                shown = describe(record)
                assert shown == {name: line[name] for name in shown}
                assert shown.get("valueJson") == line.get("valueJson")
                assert encode_again(shown) == (record.key, record.value)
                assert decode_and_encode(record) == (record.key, record.value)
                seen += 1
    assert not lines
    assert seen == RECORDS - CONTROL_RECORDS


def test_every_control_record_of_the_log() -> None:
    lines = {(line["partition"], line["offset"]): line for line in control_records()}
    assert len(lines) == CONTROL_RECORDS
    for partition, data in segments().items():
        for batch in decode_batches(data):
            if batch.is_control:
                check_control(batch, lines.pop((partition, batch.base_offset)))
    assert not lines


def check_control(batch: Batch, line: dict[str, Any]) -> None:
    (record,) = batch.records
    marker = decode_marker(record)
    assert marker is not None
    assert line["type"] == f"control:{'COMMIT' if marker.committed else 'ABORT'}"
    assert line["coordinatorEpoch"] == marker.coordinator_epoch
    assert (line["key"], line["value"]) == ((record.key or b"").hex(), (record.value or b"").hex())
    encoded = encode_marker(
        batch.base_offset,
        line["timestamp"],
        producer_id=line["producerId"],
        producer_epoch=line["producerEpoch"],
        committed=marker.committed,
        coordinator_epoch=line["coordinatorEpoch"],
    )
    assert next(decode_batches(encoded)) == batch


@pytest.mark.parametrize("tag", [5, 9_999])
def test_an_unknown_tag_is_kept_in_every_flexible_value(tag: int) -> None:
    """As a newer Kafka would write it: after all fields, at the end of the value."""
    flexible = 0
    for line in filled_records():
        value = bytes.fromhex(line["value"])
        if value[-1] != 0 or line["variant"] != "minimal" or not is_flexible(line):
            continue
        tagged = value[:-1] + b"\x01" + encode_varint(tag) + b"\x03new"
        type_id = line["typeId"]
        version, decoded = decode_value(type_id, tagged)
        assert decoded.unknown_tags == ((tag, b"new"),)  # type: ignore[union-attr]
        assert encode_value(decoded, version) == tagged
        shown = value_to_json(type_id, tagged)
        assert value_from_json(type_id, version, shown) == tagged
        flexible += 1
    assert flexible >= 20


def is_flexible(line: dict[str, Any]) -> bool:
    """Offsets and classic groups have tags from version 4 on, the other types always."""
    return line["typeId"] > 2 or line["valueVersion"] >= 4


def encode_varint(number: int) -> bytes:
    return bytes((number,)) if number < 0x80 else bytes((number & 0x7F | 0x80, number >> 7))
