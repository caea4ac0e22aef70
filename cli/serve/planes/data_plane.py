"""``DataPlane``: what the server asks of whatever has the topics and their records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from cli.serve.figures.upstream_figures import UpstreamFigures
from coordinator.runtime.api import Coordinator
from coordinator.runtime.authorizer import Authorizer
from coordinator.runtime.runtime import Runtime
from coordinator.service.admin.upstream.upstream_administration import UpstreamAdministration
from coordinator.service.ends.end_offsets import EndOffsets
from gateway.fronting.front import Front
from gateway.topics.topic_catalogue import TopicCatalogue
from model.topics import Topic
from security.tls.server_contexts import TlsContexts
from storage.log_store import LogStore

if TYPE_CHECKING:
    from upstream.cluster.cluster import Cluster


@dataclass(frozen=True, slots=True)
class Served:
    """What the listeners serve: topics, and the coordinator as each kind of listener sees it.

    With a cluster behind there is a ``front`` of it, and an ``upstream`` to administer. Unless
    ``has_offsets``, committed offsets are there.
    """

    topics: TopicCatalogue
    kafka: Coordinator
    grpc: Coordinator
    end_offsets: EndOffsets
    front: Front | None = None
    upstream: UpstreamAdministration | None = None
    has_offsets: bool = True


class DataPlane(Protocol):
    """Topics and their records. The server calls these in this order, each once."""

    @property
    def cluster(self) -> Cluster | None:
        """The cluster that has them, at which clients log in; ``None`` if they are stored here."""

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

    async def read_topics(self) -> Sequence[Topic]:
        """The topics that the log's groups are loaded with, if the log itself has none."""

    async def start(self, runtime: Runtime, store: LogStore, tls: TlsContexts | None) -> Served:
        """Make the topics known to the runtime, which has started. Raises ``CommandError``.

        ``tls`` has the keys of the first Kafka listener, if its clients encrypt.
        """

    def compute_figures(self) -> UpstreamFigures | None:
        """The figures of a cluster behind, for the metrics; ``None`` if there is none."""

    async def finish_start(self) -> None:
        """Go on after all groups are loaded."""

    async def stop_serving(self) -> None:
        """The listeners are closed; the runtime still runs."""

    async def stop(self) -> None:
        """Close what is open; the runtime has stopped."""
