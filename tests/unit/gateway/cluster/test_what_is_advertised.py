"""What Kafka 4.3 advertises is served here, or named in docs/differences.md."""

from __future__ import annotations

import re

from kio.schema.index import api_key_map

from gateway.apis.api_registry import APIS
from tests.groups import CHECKOUT

BROKER_APIS = frozenset(range(93)) - {
    *range(4, 8), 52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 71, 72, 73, 82,
}  # fmt: skip
"""What a broker of Kafka 4.3.0 answers to ApiVersions, without 71 and 72 (client metrics)."""


def find_row() -> str:
    page = (CHECKOUT / "docs" / "differences.md").read_text()
    (row,) = re.findall(r"^\| APIs that are not advertised \|.*", page, re.MULTILINE)
    return row


def test_all_apis_of_kafka_are_served_or_named() -> None:
    served = {api.key for api in APIS}
    assert served <= BROKER_APIS
    named = set(re.findall(r"\b[A-Z][a-z]+[A-Z]\w+", find_row()))
    named -= {"IncrementalAlterConfigs"}
    assert named == {compute_name(key) for key in BROKER_APIS - served}


def compute_name(key: int) -> str:
    return "".join(word.capitalize() for word in api_key_map[key].split("_"))
