"""The other end of a connection, as Kafka writes it and as a log line does."""

from __future__ import annotations

import ipaddress
from typing import Any

from gateway.settings import GatewaySettings


def compute_java_host(peername: Any) -> str:
    """The client's address as Java prints an ``InetAddress`` without a name: ``/127.0.0.1``.

    Java writes the eight groups of an IPv6 address out, without leading zeros, and shows an
    IPv4 address that came over IPv6 as IPv4.
    """
    if not isinstance(peername, tuple):
        return "/127.0.0.1"
    text = str(peername[0])
    if ":" not in text:
        return f"/{text}"
    host, _, zone = text.partition("%")
    address = ipaddress.IPv6Address(host)
    if address.ipv4_mapped is not None:
        return f"/{address.ipv4_mapped}"
    groups = ":".join(f"{int(group, 16):x}" for group in address.exploded.split(":"))
    return f"/{groups}%{zone}" if zone else f"/{groups}"


def describe_peer(peername: Any) -> str:
    """``host:port`` for the log."""
    if not isinstance(peername, tuple):
        return "?"
    host = f"[{peername[0]}]" if ":" in str(peername[0]) else peername[0]
    return f"{host}:{peername[1]}"


def compute_advertised(settings: GatewaySettings, sockname: Any) -> tuple[str, int]:
    """What a client is told for this node: as set, else the address that it connected to."""
    host, port = settings.advertised_host, settings.advertised_port
    own = sockname if isinstance(sockname, tuple) else ("localhost", 0)
    return (own[0] if host is None else host, own[1] if port is None else port)
