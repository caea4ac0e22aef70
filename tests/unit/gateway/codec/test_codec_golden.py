"""Kafka's own messages, filled, minimal and random, through the wire codec."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gateway.codec.decoding import decode
from gateway.codec.encoding import encode
from gateway.codec.kio_schema import Field, compute_fields, request_type, response_type
from tests.support.gateway.entity_json import entity_to_json

GOLDEN = Path(__file__).parents[3] / "golden"
SERVED = (3, 8, 9, 10, 15, 16, 18, 22, 68, 69)
"""The APIs served of which there are vectors."""


@cache
def load_vectors() -> list[dict[str, Any]]:
    with gzip.open(GOLDEN / "vectors" / "api_messages.jsonl.gz", "rt") as lines:
        return [row for row in map(json.loads, lines) if row["apiKey"] in SERVED]


def entity_of(row: dict[str, Any]) -> Any:
    find = request_type if row["direction"] == "request" else response_type
    return find(row["apiKey"], row["version"])


def names() -> list[tuple[str, str, int]]:
    return sorted({(row["api"], row["direction"], row["version"]) for row in load_vectors()})


def check_same(ours: Any, kafkas: Any) -> None:
    """Everything that Kafka's JSON says is what we decoded; defaults it leaves out may differ."""
    if isinstance(kafkas, dict):
        for name, value in kafkas.items():
            assert name in ours, f"{name} is not among {sorted(ours)}"
            check_same(ours[name], value)
    elif isinstance(kafkas, list):
        assert len(ours) == len(kafkas)
        for our, kafka in zip(ours, kafkas, strict=True):
            check_same(our, kafka)
    else:
        assert ours == kafkas


@pytest.mark.parametrize(("api", "direction", "version"), names())
def test_message_round_trips(api: str, direction: str, version: int) -> None:
    rows = [
        row
        for row in load_vectors()
        if (row["api"], row["direction"], row["version"]) == (api, direction, version)
    ]
    assert len(rows) == 5
    for row in rows:
        body = bytes.fromhex(row["body"])
        entity = decode(entity_of(row), body, 0, len(body), 10_000)
        check_same(entity_to_json(entity), row["json"])
        again = encode(type(entity), entity)
        if "unknown-tag" not in row["variant"]:
            assert again == body
        assert decode(type(entity), again, 0, len(again), 10_000) == entity


def test_newest_response_is_written_in_every_version() -> None:
    """The newest response, encoded in an older version, keeps the fields of that version."""
    for row in load_vectors():
        if row["direction"] != "response" or row["variant"] != "filled":
            continue
        target = entity_of(row)
        body = bytes.fromhex(row["body"])
        old = decode(target, body, 0, len(body), 10_000)
        newest = response_type(row["apiKey"], SERVED_NEWEST[row["apiKey"]])
        grown = grow(old, newest)
        again = decode(target, *whole(encode(target, grown)), 10_000)
        assert grow(again, newest) == grown


SERVED_NEWEST = {3: 13, 8: 10, 9: 10, 10: 6, 15: 6, 16: 5, 18: 4, 22: 6, 68: 1, 69: 1}


def whole(data: bytes) -> tuple[bytes, int, int]:
    return data, 0, len(data)


def grow(old: Any, newest: Any) -> Any:
    """``old``'s fields in the newest class, and a default or a zero where it has none."""
    values = {}
    for field in compute_fields(newest):
        if not hasattr(old, field.name):
            values[field.name] = zero(field)
        elif field.entity is not None and field.is_array:
            items = getattr(old, field.name)
            values[field.name] = items and tuple(grow(item, field.entity) for item in items)
        elif field.entity is not None and getattr(old, field.name) is not None:
            values[field.name] = grow(getattr(old, field.name), field.entity)
        else:
            values[field.name] = getattr(old, field.name)
    return newest(**values)


def zero(field: Field) -> Any:
    if field.is_array:
        return ()
    return {"string": "", "uuid": None, "bool": False}.get(field.kafka_type, 0)
