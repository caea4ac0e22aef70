"""Entities with random values in every field, by the schema."""

from __future__ import annotations

import struct
from random import Random
from typing import Any

from gateway.codec.kio_schema import FIXED, Field, compute_fields

_TEXTS = ("", "a", "orders", "ÄÖ", "x" * 130)


def make_entity(random: Random, entity: Any) -> Any:
    """An entity with plain values; a tagged field has its default half of the time."""
    return entity(**{field.name: _make_field(random, field) for field in compute_fields(entity)})


def _make_field(random: Random, field: Field) -> Any:
    if field.tag is not None and random.random() < 0.5:
        return field.default
    if (
        field.nullable
        and field.tag is None
        and field.kafka_type != "uuid"
        and not random.randrange(4)
    ):
        return None
    if field.is_array:
        return tuple(_make_one(random, field) for _ in range(random.randrange(4)))
    return _make_one(random, field)


def _make_one(random: Random, field: Field) -> Any:
    if field.entity is not None:
        return make_entity(random, field.entity)
    match field.kafka_type:
        case "string":
            return random.choice(_TEXTS)
        case "bytes" | "records":
            return random.randbytes(random.randrange(300))
        case "uuid":
            return random.randbytes(16)
        case "bool":
            return random.random() < 0.5
        case "float64":
            return random.random()
        case kind:
            size = struct.calcsize(FIXED[kind])
            return int.from_bytes(random.randbytes(size), "big", signed=FIXED[kind].islower())
