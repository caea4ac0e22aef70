"""An answer is asked for again if nothing of it was done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from gateway.codec.kio_schema import response_type
from tests.support.wire.frames import make_entity
from upstream.cluster.errors_in_answers import wants_other_controller, wants_other_coordinator

COMMIT, FETCH, HEARTBEAT, DESCRIBE, LEAVE, CREATE, METADATA = 8, 9, 12, 15, 13, 19, 3


def make(key: int, version: int, fields: Mapping[str, Any]) -> Any:
    return make_entity(response_type(key, version), fields)


def committed(*codes: int) -> dict[str, Any]:
    rows = [{"partition_index": at, "error_code": code} for at, code in enumerate(codes)]
    return {"topics": [{"name": "t", "partitions": [row]} for row in rows]}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (make(HEARTBEAT, 4, {"error_code": 16}), True),
        (make(HEARTBEAT, 4, {"error_code": 14}), True),
        (make(HEARTBEAT, 4, {"error_code": 0}), False),
        (make(HEARTBEAT, 4, {"error_code": 25}), False),
        (make(COMMIT, 9, committed(16, 15)), True),
        (make(COMMIT, 9, committed(16, 0)), False),
        (make(COMMIT, 9, committed(0, 16)), False),
        (make(COMMIT, 9, committed()), False),
        (make(DESCRIBE, 5, {"groups": [{"error_code": 15}]}), True),
        (make(DESCRIBE, 5, {"groups": [{"error_code": 15}, {"error_code": 30}]}), False),
        (make(FETCH, 9, {"groups": [{"error_code": 16}]}), True),
        (make(FETCH, 9, {"groups": [{"error_code": 0, **committed(16)}]}), True),
        (make(FETCH, 9, {"groups": [{"error_code": 0, **committed(0)}]}), False),
        (make(FETCH, 7, {"error_code": 16}), True),
        (make(LEAVE, 5, {"error_code": 0, "members": [{"error_code": 25}]}), False),
        (make(METADATA, 9, {}), False),
    ],
)
def test_the_coordinator_is_elsewhere(answer: Any, expected: bool) -> None:
    assert wants_other_coordinator(answer) is expected


def test_the_controller_is_elsewhere() -> None:
    assert wants_other_controller(make(CREATE, 7, {"topics": [{"error_code": 41}]}))
    assert not wants_other_controller(make(CREATE, 7, {"topics": [{"error_code": 0}]}))
    assert not wants_other_controller(make(CREATE, 7, {"topics": []}))
