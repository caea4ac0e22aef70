"""Every response that has a field for the throttle time says it."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.apis.api_registry import APIS
from gateway.codec.encoding import encode
from gateway.codec.kio_schema import compute_fields, response_schema, response_type
from gateway.quotas.throttle_field import set_throttle_ms
from tests.support.wire.codec import decode
from tests.support.wire.frames import make_entity

VERSIONS = [(api.key, version) for api in APIS for version in api.versions]
ROWS = {
    18: ("api_keys", "ApiVersion", 200, {"api_key": 1, "min_version": 0, "max_version": 3}),
    0: ("responses", "TopicProduceResponse", 3, {}),
    16: ("groups", "ListedGroup", 3, {}),
}
"""Rows that stand before the field, or behind it."""


def make_response(key: int, version: int) -> Any:
    target = response_type(key, version)
    values: dict[str, Any] = {}
    if key in ROWS:
        name, row, count, fields = ROWS[key]
        kind = getattr(response_schema(key, version), row)
        values[name] = tuple(make_entity(kind, fields) for _ in range(count))
    return make_entity(target, values)


@pytest.mark.parametrize(("key", "version"), VERSIONS)
def test_the_throttle_time_is_set_and_nothing_else(key: int, version: int) -> None:
    target = response_type(key, version)
    response = make_response(key, version)
    body = encode(target, response)
    has_field = any(field.name == "throttle_time" for field in compute_fields(target))
    changed = set_throttle_ms(key, version, body, 12_345)
    if not has_field:
        assert changed == body
        return
    read = decode(target, changed)
    assert read.throttle_time == 12_345
    object.__setattr__(read, "throttle_time", 0)
    assert encode(target, read) == body
