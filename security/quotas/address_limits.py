"""How many of something an address may have: ``max.connections.per.ip`` and its overrides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from security.quotas.addresses import find_address, parse_address

INT_MAX: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class AddressLimits:
    """The limit of all addresses, and those of some."""

    most: int = INT_MAX
    overrides: Mapping[str, int] = field(default_factory=dict)

    def find(self, client_host: str) -> tuple[str, int]:
        """What a client's host counts for, and the limit of that.

        The addresses of a network count together, one with a limit of its own alone.
        """
        address = find_address(client_host)
        most = self.overrides.get(address.text)
        return (address.network, self.most) if most is None else (address.text, most)


NO_LIMIT: Final = AddressLimits()


def make_limits(most: int, overrides: str | None) -> AddressLimits:
    """From the settings. Raises ``ValueError``."""
    return AddressLimits(most, parse_overrides(overrides or ""))


def parse_overrides(text: str) -> dict[str, int]:
    """The limits in ``max.connections.per.ip.overrides``: ``127.0.0.1:200,2001:db8::1:50``.

    Raises ``ValueError`` for what is no address and number: names of hosts are not looked up.
    """
    found = {}
    for each in filter(None, map(str.strip, text.split(","))):
        host, colon, count = each.rpartition(":")
        if not colon or not count.strip().isdecimal():
            raise ValueError(f"{each!r} is not ADDRESS:COUNT")
        found[parse_address(host.strip().strip("[]")).text] = int(count)
    return found
