"""Settings of the relays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gateway.rewriting.api_versions import OWN_OFFERS
from gateway.rewriting.naming import OwnNode
from security.tls.server_contexts import TlsContexts


@dataclass(frozen=True, slots=True, kw_only=True)
class RelaySettings:
    """``added`` are the versions of the APIs of the consumer protocol that relays offer."""

    # More than 15 attributes: one attribute is one setting.

    own: OwnNode
    """Muster's node; relays are advertised with its host."""
    ports: range
    bind_host: str = "0.0.0.0"
    tls: TlsContexts | None = None
    """The keys of Muster's own listener, if clients encrypt; replaced with those."""
    added: Mapping[int, range] = field(default_factory=lambda: OWN_OFFERS)
    connections_max: int = 10_000
    """Of each relay."""
    unanswered_max: int = 1_000
    """Requests of a connection; a client that sends more waits."""
    unsent_bytes_max: int = 64 * 1024
    """Of a connection, in each direction; above it the other side is not read."""
    held_request_bytes_max: int = 32 * 1024 * 1024
    """The largest request that is looked at, such as the leader's SyncGroup of a large group."""
    held_response_bytes_max: int = 64 * 1024 * 1024
    """The largest response that is looked at, such as Metadata of many topics."""
    held_bytes_total_max: int = 512 * 1024 * 1024
    """Of all connections."""
    held_always_bytes: int = 16 * 1024
    """A frame of no more is looked at in any case: those who hold all that may be held with large
    ones must not end everybody else's heartbeats."""
    handshakes_max: int = 1_000
    """Of each relay: TLS handshakes that are not finished; more of them end the oldest."""
    handshake_timeout_ms: int = 10_000
    connect_timeout_ms: int = 30_000
    idle_ms: int = 600_000
    stalled_ms: int = 60_000
    """How long a client, or a broker, may take nothing of what there is to send, and how long a
    frame that is looked at may take to come."""
    late_answer_ms: int = 10_000
    """How long the broker's answer may be awaited to a request that was answered here."""
