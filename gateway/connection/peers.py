"""Addresses of a connection: as Kafka prints them, for the log, and as advertised."""

from __future__ import annotations

from typing import Any

from security.endpoints import Endpoint
from security.hosts import canonize_host


def compute_java_host(peername: Any) -> str:
    """The client's address as Java prints an ``InetAddress`` without a host name: ``/127.0.0.1``.

    Java prints all eight groups of an IPv6 address, without leading zeros, and an IPv4-mapped
    address as IPv4.
    """
    if not isinstance(peername, tuple):
        return "/127.0.0.1"
    return f"/{canonize_host(str(peername[0]))}"


def describe_peer(peername: Any) -> str:
    """``host:port`` for the log."""
    if not isinstance(peername, tuple):
        return "?"
    host = f"[{peername[0]}]" if ":" in str(peername[0]) else peername[0]
    return f"{host}:{peername[1]}"


def compute_advertised(endpoint: Endpoint, sockname: Any) -> tuple[str, int]:
    """The (host, port) of this node for a client: the setting, else the address it connected to."""
    host, port = endpoint.advertised_host, endpoint.advertised_port
    own = sockname if isinstance(sockname, tuple) else ("localhost", 0)
    return (own[0] if host is None else host, own[1] if port is None else port)
