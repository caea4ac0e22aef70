"""How the cluster is reached, and the bounds of that."""

from __future__ import annotations

from dataclasses import dataclass

from security.client.client_security import ClientSecurity


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """``bootstrap``: hosts and ports, of which one has to answer.

    ``refresh_ms``: how often brokers and controller are read without a cause.
    """

    bootstrap: tuple[tuple[str, int], ...]
    security: ClientSecurity = ClientSecurity()  # noqa: RUF009 - frozen
    client_id: str = "muster"
    connect_timeout_ms: int = 10_000
    request_timeout_ms: int = 30_000
    refresh_ms: int = 10_000
    backoff_ms: int = 50
    backoff_max_ms: int = 1_000
    frame_bytes_max: int = 128 * 1024 * 1024
    unsent_bytes_max: int = 16 * 1024 * 1024
    """Of one connection, beyond which requests wait."""
    unanswered_max: int = 10_000
    """Of one connection, beyond which requests are refused."""
