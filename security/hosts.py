"""Addresses of clients as Java prints them: the form in which requests have them."""

from __future__ import annotations

import ipaddress
from functools import lru_cache


@lru_cache(maxsize=1_024)
def canonize_host(text: str) -> str:
    """An address however it is written: ``2001:db8::1`` is ``2001:db8:0:0:0:0:0:1``.

    An IPv4-mapped address is IPv4. What is no IPv6 address stays as it is.
    """
    host, percent, zone = text.partition("%")
    try:
        address = ipaddress.IPv6Address(host)
    except ValueError:
        return text
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    groups = ":".join(f"{int(group, 16):x}" for group in address.exploded.split(":"))
    return f"{groups}{percent}{zone}"
