"""``Front``: what the Kafka wire asks for when Muster stands in front of a cluster.

Without a front every group is here and topics are those of the server's own catalogue. With one,
topics, users, ACLs and groups that were not taken are the cluster's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from gateway.fronting.remembered import RememberedAnswers
from gateway.sasl.logins import Login
from model.places import Place


class LinkUnavailable(Exception):
    """There is no connection to the cluster for this client: nothing was sent."""


class PassedLink(Protocol):
    """A connection to a broker for the requests of one client, as that client."""

    def send(self, frame: bytes) -> None:
        """Send a whole frame, size included."""

    async def read_frame(self) -> bytes | None:
        """The next frame, size included; ``None`` at the end."""

    def close(self) -> None:
        """Close."""


class PassedClient(Protocol):
    """A client's connection, as the passing on of its requests sees it.

    ``passed`` is the link over which its login was passed on, if that was done. A new login sets a
    new link. From the first request that is passed on, ``gateway.fronting.passing`` alone reads it.
    """

    passed: Login | None

    @property
    def closed(self) -> bool:
        """Whether the connection is gone."""

    def close(self) -> None:
        """Close once the answered responses are sent; abandon the requests that wait."""

    def refuse(self, reason: str, detail: str) -> None:
        """Log a refusal, each reason once a second, and close."""


class Front(Protocol):
    """The cluster behind, as the Kafka wire sees it. Everything but ``open`` answers at once."""

    @property
    def node_id(self) -> int:
        """The id of Muster's node among the brokers."""

    @property
    def versions(self) -> Mapping[int, range]:
        """The versions of each API that all brokers serve."""

    @property
    def offers_consumer_protocol(self) -> bool:
        """Whether members of the consumer protocol can be served on this cluster's topics."""

    @property
    def remembered(self) -> RememberedAnswers:
        """What the cluster answered to clients."""

    def address_of(self, node_id: int) -> tuple[str, int] | None:
        """Where clients reach the relay of a broker."""

    def find_place(self, group_id: str) -> Place:
        """Where a group is."""

    def matches(self, group_id: str) -> bool:
        """Whether the group is one of those that are to be taken."""

    def ask_to_take(self, group_id: str, cause: str) -> None:
        """Have the group taken over; nothing happens if it is already on its way."""

    def other_muster_of(self, group_id: str) -> tuple[int, str, int] | None:
        """Node id, host and port of another Muster that has the group."""

    def note_passed_on(self, key: int) -> None:
        """Count a request that is passed on, by its API."""

    async def open(self, connection: PassedClient) -> PassedLink:
        """The link for a client's requests: that of its login if there is one, else a new one.

        Raises ``LinkUnavailable``, also when the link of its login has ended. It may be cancelled.
        """
