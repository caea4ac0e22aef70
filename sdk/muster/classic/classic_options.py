"""The options of a classic member, checked before it joins."""

from __future__ import annotations

from dataclasses import dataclass

from muster.arguments import check_ms, check_text


@dataclass(frozen=True, slots=True)
class ClassicOptions:
    """What a member sends when it joins, and how it behaves."""

    session_timeout_ms: int
    rebalance_timeout_ms: int
    heartbeat_interval_ms: int
    metadata_refresh_ms: int
    client_id: str
    instance_id: str
    rejoin: bool


def make_options(
    session_timeout_ms: int,
    rebalance_timeout_ms: int,
    heartbeat_interval_ms: int,
    metadata_refresh_ms: int,
    client_id: str,
    instance_id: str,
    *,
    rejoin: bool,
) -> ClassicOptions:
    """Raises ``TypeError`` or ``ValueError`` for values that do not fit into a message."""
    return ClassicOptions(
        check_ms("session_timeout_ms", session_timeout_ms),
        check_ms("rebalance_timeout_ms", rebalance_timeout_ms),
        check_ms("heartbeat_interval_ms", heartbeat_interval_ms),
        check_ms("metadata_refresh_ms", metadata_refresh_ms),
        check_text("client_id", client_id),
        check_text("instance_id", instance_id),
        rejoin,
    )
