"""Which names of this server browsers may use.

A page of somebody else can let its own name resolve to this server's address (DNS rebinding), and
is then of one origin with the console. Only the name that the browser asks for tells.
"""

from __future__ import annotations

from collections.abc import Collection
from ipaddress import IPv4Address, IPv6Address


def find_host_name(host: str) -> str | None:
    """The name or address in a Host header, without the port; ``None`` for what is none."""
    if host.startswith("["):
        name, bracket, rest = host[1:].partition("]")
        if not bracket or (rest and not _is_port(rest)):
            return None
        return name
    name, colon, port = host.partition(":")
    if not name or (colon and not _is_port(colon + port)):
        return None
    return name.rstrip(".").lower()


def is_own_name(host: str, names: Collection[str]) -> bool:
    """Whether a Host header is an address, localhost, or one of the names (lower case)."""
    name = find_host_name(host)
    if name is None:
        return False
    if host.startswith("["):
        return _is_address(name, IPv6Address)
    if name == "localhost" or name.endswith(".localhost") or name in names:
        return True
    return _is_address(name, IPv4Address)


def _is_address(name: str, kind: type[IPv4Address | IPv6Address]) -> bool:
    try:
        kind(name)
    except ValueError:
        return False
    return True


def _is_port(text: str) -> bool:
    return text.startswith(":") and (text[1:].isdecimal() or text == ":")
