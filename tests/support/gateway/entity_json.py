"""Entities of the wire as the JSON that Kafka's converters write."""

from __future__ import annotations

import base64
import re
from typing import Any

from gateway.codec.kio_schema import Field, compute_fields


def compute_wire_name(field: Field) -> str:
    camel = re.sub(r"_([a-z])", lambda match: match[1].upper(), field.name)
    return camel + "Ms" * field.kafka_type.startswith(("timedelta", "datetime"))


def to_json(field: Field, value: Any) -> Any:
    """A value as Kafka's JSON converters write it."""
    if field.is_array and isinstance(value, tuple):
        row = Field(field.name, field.kafka_type, field.entity, False, False, None, None)
        return [to_json(row, item) for item in value]
    if field.kafka_type == "uuid":
        return base64.urlsafe_b64encode(value or bytes(16)).decode().rstrip("=")
    if value is None:
        return None
    if field.entity is not None:
        return entity_to_json(value)
    if field.kafka_type in ("bytes", "records"):
        return base64.b64encode(value).decode()
    return value


def entity_to_json(entity: Any) -> dict[str, Any]:
    rows = compute_fields(type(entity))
    return {compute_wire_name(row): to_json(row, getattr(entity, row.name)) for row in rows}
