"""The address of a gRPC peer."""

from __future__ import annotations

import ipaddress
from urllib.parse import unquote

from security.quotas.addresses import find_address


def compute_client_host(peer: str) -> str:
    """The peer's address as Java prints it: ``/127.0.0.1``, ``/0:0:0:0:0:0:0:1``."""
    kind, _, address = unquote(peer).partition(":")
    host = address.rpartition(":")[0] if kind in ("ipv4", "ipv6") else address
    try:
        parsed = ipaddress.ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return f"/{host}"
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return f"/{parsed.ipv4_mapped}"
        groups = parsed.exploded.split(":")
        return "/" + ":".join(group.lstrip("0") or "0" for group in groups)
    return f"/{parsed}"


def compute_client_network(peer: str) -> str:
    """What limits of one host are counted by: whoever has one IPv6 address has its /64."""
    return find_address(compute_client_host(peer)).network
