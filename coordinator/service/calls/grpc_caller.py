"""The caller of a gRPC call: principal, client id and host."""

from __future__ import annotations

import ipaddress
from typing import Final
from urllib.parse import unquote

from model.caller import ANONYMOUS, Caller

LISTENER: Final = "grpc"
"""The name of the listener, beside those of the Kafka wire."""


def compute_caller(peer: str, client_id: str) -> Caller:
    """The caller behind a gRPC peer such as ``ipv4:127.0.0.1:50412`` or ``ipv6:[::1]:50412``."""
    return Caller(ANONYMOUS, client_id, compute_client_host(peer), listener=LISTENER)


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
