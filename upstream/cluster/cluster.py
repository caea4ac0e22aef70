"""``Cluster``: the interface to the cluster that Muster stands in front of.

Its implementation is ``upstream.cluster.cluster_client``. Everything runs on the event loop. A
request is a ``ClientRequest`` (``gateway.codec.client_frames``), encoded in the newest version that
both sides know.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from gateway.codec.client_frames import ClientRequest


@dataclass(frozen=True, slots=True)
class ClusterBroker:
    """A broker as the cluster's Metadata has it."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


class ClusterUnreachable(Exception):
    """No answer: no broker can be reached, the connection broke, or the time is over.

    What was asked may have happened.
    """


class NotSent(ClusterUnreachable):
    """What was asked was certainly not sent."""


class NotServed(NotSent):
    """The broker serves no version of the API that can be used: asking again is of no use."""


class CoordinatorRefused(ClusterUnreachable):
    """FindCoordinator was answered with an error that does not pass, such as a missing right."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class BrokerLink(Protocol):
    """One authenticated connection of Muster's own to one broker. Requests are answered in order.

    For requests that wait in the broker, such as JoinGroup, which hold back all behind them.
    """

    async def ask(self, request: ClientRequest, *, timeout_ms: int = 30_000) -> Any:
        """Send, and return the response entity. Raises ``ClusterUnreachable``."""

    def close(self) -> None:
        """Close; what waits gets ``ClusterUnreachable``."""


class RawLink(Protocol):
    """A connection to a broker on which nothing has been sent: for a client's own requests."""

    def send(self, frame: bytes) -> None:
        """Send a whole frame, size included."""

    async def read_frame(self) -> bytes | None:
        """The next frame, size included; ``None`` at the end."""

    async def drain(self) -> None:
        """Wait while too much is unsent."""

    def hand_over(self, protocol: asyncio.Protocol) -> asyncio.Transport:
        """Give the connection away: ``protocol`` is told of what comes from now on.

        For those who pass bytes on as they come. Nothing has been sent or read before. The caller
        has the transport, keeps the link until the end, and ``connection_made`` is not called.
        Raises ``ClusterUnreachable`` if the broker has closed the connection.
        """

    def close(self) -> None:
        """Close."""


class Cluster(Protocol):
    """The cluster, by Muster's own identity."""

    @property
    def cluster_id(self) -> str:
        """Its id."""

    @property
    def controller_id(self) -> int:
        """The broker that takes requests for the controller; -1 if unknown."""

    @property
    def brokers(self) -> Mapping[int, ClusterBroker]:
        """The brokers by node id, as last heard."""

    @property
    def versions(self) -> Mapping[int, range]:
        """The versions of each API that all known brokers serve."""

    @property
    def is_reachable(self) -> bool:
        """Whether the last thing that was asked was answered."""

    @property
    def fault(self) -> str | None:
        """Why the cluster is not asked any more, in one line: it is another one than before."""

    @property
    def has_topic_ids(self) -> bool:
        """Whether topics have ids (Metadata from version 10 on)."""

    @property
    def offers_consumer_protocol(self) -> bool:
        """Whether members of the consumer protocol can be served: ids, and Metadata 12."""

    @property
    def has_consumer_protocol(self) -> bool:
        """Whether the cluster itself has KIP-848, and it is on."""

    async def refresh(self) -> None:
        """Read brokers and controller anew. Raises ``ClusterUnreachable``."""

    def on_brokers_changed(self, callback: Callable[[], None]) -> None:
        """Call after each change of ``brokers``."""

    async def ask(
        self, request: ClientRequest, *, node_id: int | None = None, timeout_ms: int = 30_000
    ) -> Any:
        """Ask a broker, any if no node is named. Raises ``ClusterUnreachable``.

        Connections are shared and requests pipelined. Retries, while the time lasts, only what was
        certainly not sent.
        """

    async def ask_coordinator(
        self, group_id: str, request: ClientRequest, *, timeout_ms: int = 30_000
    ) -> Any:
        """Ask the coordinator of a group in the cluster.

        A response with NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE or COORDINATOR_LOAD_IN_PROGRESS,
        at the top or in every part, is asked again while the time lasts, then returned.
        """

    async def find_coordinator(
        self, group_id: str, *, again: bool = False, timeout_ms: int = 30_000
    ) -> int:
        """The node id of a group's coordinator; ``again``: do not believe what is remembered."""

    async def open_link(self, node_id: int) -> BrokerLink:
        """A connection for one user alone. Raises ``ClusterUnreachable``."""

    async def open_raw(self, node_id: int | None) -> RawLink:
        """A connection, with TLS if the cluster wants it, on which nothing was sent.

        Raises ``ClusterUnreachable``.
        """
