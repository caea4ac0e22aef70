"""Topics of one side by short names, which are the same on both sides; their ids are not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from tests.differential.seen import Places
from tests.differential.sides import admin
from tests.support.wire.connection import Connection

SHARED: Final = {"wide1": 1, "wide2": 2, "wide3": 3, "wide6": 6}
"""Topics that are there from the start, and never change, and their partitions."""

OWN: Final = ("a", "b")
"""Those that a sequence makes for itself."""

NO_TOPIC_ID: Final = bytes(15) + b"\x01"


class Topics:
    """What is known of the topics of a sequence. ``prefix`` is before the names of its own."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._shorts = {self.full_name(short): short for short in (*SHARED, *OWN)}
        self._by_id: dict[bytes, str] = {}
        self._ids: dict[str, bytes] = {}
        self._partitions: dict[str, int] = {}
        self._births: dict[str, int] = {}

    def full_name(self, short: str) -> str:
        return short if short in SHARED else f"{self._prefix}-{short}"

    def short_name(self, name: str) -> str:
        return self._shorts.get(name, name)

    def short_name_of(self, topic_id: bytes) -> str:
        """With a mark for each time that the topic was made again."""
        return self._by_id.get(topic_id, "?")

    def partitions(self, short: str) -> int:
        """0 where there is no such topic now."""
        return self._partitions.get(short, 0)

    def topic_id(self, short: str) -> bytes:
        """Also of a topic that is gone."""
        return self._ids.get(short, NO_TOPIC_ID)

    def list_own(self) -> list[str]:
        """Full names of those that are there now."""
        return [self.full_name(short) for short in OWN if self.partitions(short)]

    async def learn(self, connection: Connection) -> None:
        """See which there are, and forget none of the ids."""
        found = await admin.describe_topics(connection, self._shorts)
        self._partitions = {}
        for name, (topic_id, partitions) in found.items():
            short = self._shorts[name]
            self._partitions[short] = partitions
            self._ids[short] = topic_id
            if topic_id not in self._by_id:
                birth = self._births[short] = self._births.get(short, 0) + 1
                self._by_id[topic_id] = short + "'" * (birth - 1)

    def read_places(self, assignment: Any) -> Places:
        """The partitions of an assignment in an answer."""
        return frozenset(
            (self.short_name_of(bytes(topic.topic_id)), partition)
            for topic in assignment.topic_partitions
            for partition in topic.partitions
        )

    def make_rows(self, places: Iterable[tuple[str, int]]) -> list[dict[str, Any]]:
        """``read_places`` turned round, for a request."""
        ids = {name: topic_id for topic_id, name in self._by_id.items()}
        by_id: dict[bytes, list[int]] = {}
        for name, partition in sorted(places):
            by_id.setdefault(ids.get(name, NO_TOPIC_ID), []).append(partition)
        return [{"topic_id": topic_id, "partitions": rows} for topic_id, rows in by_id.items()]
