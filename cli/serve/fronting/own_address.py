"""Where clients reach Muster's node in front of a cluster, and with it the relays."""

from __future__ import annotations

from cli.settings import Address
from security.endpoints import Endpoint


def compute_own_address(first: Endpoint) -> Address:
    """The address of the node: that of the first Kafka listener, as it is advertised.

    The rules of the settings have seen to it that clients can connect to it
    (``cli.settings.upstream_rules``).
    """
    host = first.host if first.advertised_host is None else first.advertised_host
    port = first.port if first.advertised_port is None else first.advertised_port
    return Address(host, port)
