"""Addresses of clients, as quotas and limits tell them apart."""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import Final, NamedTuple

_NETWORK_BITS: Final = 64
"""Whoever has one IPv6 address usually has all of its /64, and may use a new one each time."""


class ClientAddress(NamedTuple):
    """An address as quotas name it, and the network whose limits it shares by default.

    An IPv4 address is its own network, an IPv6 address belongs to its /64.
    """

    text: str
    network: str


def parse_address(text: str) -> ClientAddress:
    """Parse an address. Raises ``ValueError`` for what is none, such as a host's name."""
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return ClientAddress(str(address.ipv4_mapped), str(address.ipv4_mapped))
        network = ipaddress.IPv6Network((address, _NETWORK_BITS), strict=False)
        return ClientAddress(str(address), str(network))
    return ClientAddress(str(address), str(address))


@lru_cache(maxsize=1_024)
def find_address(client_host: str) -> ClientAddress:
    """The address of a ``Caller.client_host``; what is none stands for itself."""
    text = client_host.removeprefix("/")
    try:
        return parse_address(text)
    except ValueError:
        return ClientAddress(text, text)
