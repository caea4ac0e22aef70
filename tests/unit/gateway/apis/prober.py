"""Asks a server of the Kafka wire and makes its answers plain, so that two servers' compare."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from storage.codec.batches import read_batch_header
from storage.codec.errors import CodecError
from tests.support.waiting import wait_until
from tests.support.wire.blocking import ConnectionClosed, NamedClient

UNKNOWN_ID = b"x" * 16
ANSWER_IN_TIME_S = 30.0
UNCOMPARED = ("configs", "throttle_time", "error_message", "batch_index_error_message")
"""Texts are each server's own, and so are the configs that it has."""

Probe = Callable[["Prober"], Any]


class Prober:
    """Asks one server; remembers the ids of topics by their names."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._client = NamedClient(self._address)
        self.ids: dict[str, bytes] = {}

    def ask(self, api: str, version: int, /, **fields: Any) -> Any:
        try:
            answer = self._client.ask(api, version, **fields)
        except ConnectionClosed:
            self._client.close()
            self._client = NamedClient(self._address)
            return "closed"
        return self._normalise(answer)

    def close(self) -> None:
        self._client.close()

    def create(self, name: str, partitions: int) -> None:
        """Create a topic and wait until its partitions are led."""
        self.ask("create_topics", 7, topics=[topic(name, partitions)], timeout=5_000)

        def is_led() -> bool:
            answer = self._client.ask(
                "metadata",
                12,
                topics=[{"topic_id": None, "name": name}],
                allow_auto_topic_creation=False,
                include_topic_authorized_operations=False,
            )
            (found,) = answer["topics"]
            led = [row for row in found["partitions"] if row["error_code"] == 0]
            self.ids[name] = found["topic_id"]
            return found["error_code"] == 0 and len(led) == partitions

        wait_until(is_led, f"topic {name} is led", ANSWER_IN_TIME_S)

    def _normalise(self, value: Any, field: str = "") -> Any:
        if isinstance(value, dict):
            return {
                name: self._normalise(inner, name)
                for name, inner in value.items()
                if name not in UNCOMPARED
            }
        if isinstance(value, list):
            return [self._normalise(item) for item in value]
        if field == "topic_id" and value is not None:
            known = [name for name, topic_id in self.ids.items() if topic_id == value]
            return f"id of {known[0]}" if known else "an id"
        if field == "producer_id":
            return "an id" if value >= 0 else value
        if field == "session_id":
            return 0
        if field == "records" and value is not None:
            return list_batches(value)
        return value


def list_batches(data: bytes) -> list[list[int]]:
    """(base offset, records) of whole batches; what is cut at the end is left out."""
    found = []
    pos = 0
    while pos < len(data):
        try:
            header = read_batch_header(data, pos)
        except CodecError:
            break
        found.append([header.base_offset, header.count])
        pos += header.size
    return found


def topic(
    name: str,
    partitions: int = 1,
    factor: int = 1,
    assignments: Mapping[int, list[int]] | None = None,
    configs: Mapping[str, str | None] | None = None,
    more: tuple[tuple[int, list[int]], ...] = (),
) -> dict[str, Any]:
    """A topic of CreateTopics."""
    return {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": factor,
        "assignments": [
            {"partition_index": index, "broker_ids": nodes}
            for index, nodes in (*(assignments or {}).items(), *more)
        ],
        "configs": [{"name": key, "value": value} for key, value in (configs or {}).items()],
    }
