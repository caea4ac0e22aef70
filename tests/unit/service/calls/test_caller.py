"""Client hosts of gRPC peers, in Kafka's format."""

from __future__ import annotations

import pytest

from coordinator.service.calls.grpc_caller import compute_caller
from coordinator.service.credentials.peer_host import compute_client_host, compute_client_network


@pytest.mark.parametrize(
    ("peer", "host"),
    [
        ("ipv4:127.0.0.1:50412", "/127.0.0.1"),
        ("ipv4:10.20.30.40:1", "/10.20.30.40"),
        ("ipv6:[::1]:50412", "/0:0:0:0:0:0:0:1"),
        ("ipv6:%5B::1%5D:50412", "/0:0:0:0:0:0:0:1"),
        ("ipv6:[2001:db8::ff00:42]:9", "/2001:db8:0:0:0:0:ff00:42"),
        ("ipv6:[fe80::1%25eth0]:9", "/fe80:0:0:0:0:0:0:1"),
        ("ipv6:[::ffff:127.0.0.1]:9", "/127.0.0.1"),
        ("unix:/run/muster.sock", "//run/muster.sock"),
        ("unknown", "/"),
    ],
)
def test_client_host_is_as_java_writes_addresses(peer: str, host: str) -> None:
    assert compute_client_host(peer) == host


def test_the_addresses_of_one_network_share_limits() -> None:
    one, other = "ipv6:[2001:db8::1]:9", "ipv6:[2001:db8::ffff:1]:10"
    assert compute_client_network(one) == compute_client_network(other)
    assert compute_client_network(one) != compute_client_network("ipv6:[2001:db8:0:1::1]:9")
    assert compute_client_network("ipv4:10.0.0.1:1") != compute_client_network("ipv4:10.0.0.2:1")


def test_a_caller_is_anonymous_until_it_can_authenticate() -> None:
    caller = compute_caller("ipv4:127.0.0.1:1", "app")
    assert (caller.principal, caller.client_id) == ("User:ANONYMOUS", "app")
