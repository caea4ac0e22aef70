"""``DataPlane``: what the server asks of whatever has the topics and their records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from coordinator.runtime.api import Coordinator
from coordinator.runtime.authorizer import Authorizer
from coordinator.runtime.runtime import Runtime
from gateway.topics.topic_catalogue import TopicCatalogue
from storage.log_store import LogStore


@dataclass(frozen=True, slots=True)
class Served:
    """What the listeners serve: topics, and the coordinator as each kind of listener sees it."""

    topics: TopicCatalogue
    kafka: Coordinator
    grpc: Coordinator


class DataPlane(Protocol):
    """Topics and their records. The server calls these in this order, each once."""

    @property
    def authorizer(self) -> Authorizer:
        """Who decides what clients may do."""

    @property
    def open_files(self) -> int:
        """How many files and connections of its own it wants to have open."""

    async def open(self, open_files: int) -> None:
        """Check what can be checked before anything is opened here. Raises ``CommandError``.

        ``open_files`` is how many it may have.
        """

    async def start(self, runtime: Runtime, store: LogStore) -> Served:
        """Make the topics known to the runtime, which has started. Raises ``CommandError``."""

    async def finish_start(self) -> None:
        """Go on after all groups are loaded."""

    async def stop_serving(self) -> None:
        """The listeners are closed; the runtime still runs."""

    async def stop(self) -> None:
        """Close what is open; the runtime has stopped."""
