"""Requests and answers recorded between real clients and a real Kafka 4.3.0."""

from __future__ import annotations

import base64
import struct
from typing import Any

from gateway.apis.api_registry import APIS
from gateway.codec.decoding import decode
from gateway.codec.encoding import encode
from gateway.codec.kio_schema import response_type
from gateway.headers import Routes, skip_header
from tests.support.gateway.entity_json import entity_to_json
from tests.support.gateway.exchanges import load_exchanges
from tests.unit.gateway.codec.test_codec_golden import check_same


def recorded() -> list[dict[str, Any]]:
    served = {api.key: api.versions for api in APIS}
    return [row for row in load_exchanges() if row["version"] in served.get(row["apiKey"], ())]


def test_every_recorded_request_to_an_api_served_is_read() -> None:
    routes = Routes(APIS, 10_000)
    seen: set[tuple[str, int]] = set()
    for row in recorded():
        data = bytes.fromhex(row["request"])
        route = routes.find(data[:4])
        assert route is not None, f"{row['api']} v{row['version']}"
        client_id, position = skip_header(data, 8, len(data), route.header_tags)
        assert client_id.decode() == row["clientId"]
        assert struct.unpack_from(">i", data, 4)[0] == row["correlationId"]
        request = route.decode(data, position, len(data))
        if hasattr(request, "__type__"):
            check_same(entity_to_json(request), row["requestJson"])
        seen.add((row["api"], row["version"]))
    assert len(seen) >= 25


def test_every_recorded_answer_is_written_as_kafka_wrote_it() -> None:
    for row in recorded():
        data = bytes.fromhex(row["response"])
        target = response_type(row["apiKey"], row["version"])
        position = 5 if target.__header_schema__.__flexible__ else 4
        answer = decode(target, data, position, len(data), 100_000)
        check_same(entity_to_json(answer), row["responseJson"])
        if row["apiKey"] != 18:  # Kafka writes the features in the order of a hash map
            assert encode(target, answer) == data[position:]


def test_kafkas_uuids_are_ours() -> None:
    """Topic ids of the recording, as both write them."""
    row = next(row for row in recorded() if row["api"] == "OffsetFetch" and row["version"] == 10)
    text = row["requestJson"]["groups"][0]["topics"][0]["topicId"]
    assert base64.urlsafe_b64decode(text + "==") in bytes.fromhex(row["request"])
