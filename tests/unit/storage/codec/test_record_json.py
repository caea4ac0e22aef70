"""Kafka's JSON of every record type, including those of share and streams groups."""

from __future__ import annotations

from typing import Any

import pytest

from model.ids import GroupId
from model.log.records import ConsumerGroupMetadataKey, ConsumerGroupMetadataValue
from storage.codec.errors import CodecError
from storage.codec.record_codec import encode_key, encode_value
from storage.codec.to_json import compute_type_name, key_to_json, value_to_json
from tests.support.record_json import key_from_json, value_from_json
from tests.support.storage.golden import golden_records


def test_golden_keys() -> None:
    for line in golden_records():
        key = bytes.fromhex(line["key"])
        assert compute_type_name(line["typeId"]) == line["type"]
        assert key_to_json(key) == line["keyJson"]
        assert key_from_json(line["typeId"], line["keyJson"]) == key


def test_golden_values() -> None:
    for line in golden_records():
        if line["value"] is None:
            continue
        value = bytes.fromhex(line["value"])
        shown = value_to_json(line["typeId"], value)
        assert shown == line["valueJson"]
        assert list(shown) == list(line["valueJson"]), "in Kafka's order"
        assert value_from_json(line["typeId"], line["valueVersion"], shown) == value


def test_unknown_tags_are_shown_and_come_back() -> None:
    value = encode_value(ConsumerGroupMetadataValue(1, 2, ((5, b"\x00\xff"),)))
    shown = value_to_json(3, value)
    assert shown["unknownTaggedFields"] == [{"tag": 5, "data": "AP8="}]
    assert value_from_json(3, 0, shown) == value


def test_what_is_unknown() -> None:
    assert compute_type_name(99) is None
    with pytest.raises(CodecError, match="type 99 is unknown"):
        key_to_json(b"\x00\x63")
    with pytest.raises(CodecError, match="OFFSET_COMMIT has no value of version 5"):
        value_to_json(1, b"\x00\x05")
    with pytest.raises(CodecError, match="at least 2 bytes"):
        value_to_json(1, b"")
    with pytest.raises(CodecError, match="1 bytes too many"):
        key_to_json(encode_key(ConsumerGroupMetadataKey(GroupId("g"))) + b"x")


OFFSET = {"offset": 1, "leaderEpoch": 2, "metadata": "", "commitTimestamp": 3}


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({}, "offset is missing"),
        ({**OFFSET, "offest": 1}, "no such field: offest"),
        ({**OFFSET, "offset": "1"}, "should be int"),
        ({**OFFSET, "offset": True}, "should be int"),
        ({**OFFSET, "offset": 1 << 63}, "value"),
        ({**OFFSET, "metadata": None}, "should be str"),
        ({**OFFSET, "topicId": "x"}, "base64|UUID"),
        ({**OFFSET, "unknownTaggedFields": [{"tag": 1}]}, "tag and data"),
        ([], "should be dict"),
    ],
)
def test_json_that_is_not_the_record(value: Any, why: str) -> None:
    with pytest.raises(CodecError, match=why):
        value_from_json(1, 4, value)
