"""The address of a gRPC peer, and the name of the listener that it connects to."""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote

from security.hosts import canonize_host
from security.quotas.addresses import find_address

LISTENER: Final = "grpc"
"""The name of the listener, beside those of the Kafka wire."""


def compute_client_host(peer: str) -> str:
    """The peer's address as Java prints it: ``/127.0.0.1``, ``/0:0:0:0:0:0:0:1``."""
    kind, _, address = unquote(peer).partition(":")
    if kind not in ("ipv4", "ipv6"):
        return f"/{address}"
    host = address.rpartition(":")[0].strip("[]")
    return f"/{canonize_host(host.partition('%')[0])}"


def compute_client_network(peer: str) -> str:
    """What limits of one host are counted by: whoever has one IPv6 address has its /64."""
    return find_address(compute_client_host(peer)).network
