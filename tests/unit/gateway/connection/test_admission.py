"""How many connections an address may have, and how many may be made in a second."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gateway.connection.admission import WAITING_OF_ONE_MAX
from gateway.settings import GatewaySettings
from model.access.quotas import DEFAULT_NAME, QuotaEntity
from security.quotas.address_limits import parse_overrides
from security.quotas.client_quotas import ClientQuotas
from tests.support.gateway.wire_door import PLAIN, Door, Gateway

VERSIONS = 18


def make_gateway(**settings: Any) -> Gateway:
    return Gateway(GatewaySettings(**settings), quotas=ClientQuotas())


def serves(door: Door) -> bool:
    """Whether a request is answered now."""
    if not door.transport.is_open:
        return False
    door.request(VERSIONS, 0, 1)
    return len(door.frames()) == 1


def test_an_address_has_so_many_connections_and_others_theirs() -> None:
    gateway = make_gateway(max_connections_per_ip=3)
    flood = [gateway.connect(host="10.0.0.1") for _ in range(10)]
    assert [door.transport.is_open for door in flood] == [True] * 3 + [False] * 7
    assert serves(gateway.connect(host="10.0.0.2"))
    assert gateway.shared.refusals.counts == {"too-many-of-one-address": 7}
    flood[0].lose()
    assert serves(gateway.connect(host="10.0.0.1"))
    assert not serves(gateway.connect(host="10.0.0.1"))


def test_the_addresses_of_one_ipv6_network_count_together() -> None:
    gateway = make_gateway(max_connections_per_ip=2)
    assert serves(gateway.connect(host="2001:db8::1"))
    assert serves(gateway.connect(host="2001:db8::2"))
    assert not serves(gateway.connect(host="2001:db8::3"))
    assert serves(gateway.connect(host="2001:db8:0:1::3"))


def test_some_addresses_have_their_own_limit() -> None:
    gateway = make_gateway(
        max_connections_per_ip=0, max_connections_per_ip_overrides="10.0.0.1:2,[2001:db8::1]:1"
    )
    assert serves(gateway.connect(host="10.0.0.1"))
    assert serves(gateway.connect(host="10.0.0.1"))
    assert not serves(gateway.connect(host="10.0.0.1"))
    assert serves(gateway.connect(host="2001:db8::1"))
    assert not serves(gateway.connect(host="2001:db8::2"))


@pytest.mark.parametrize("text", ["localhost:5", "10.0.0.1", "10.0.0.1:x", "10.0.0.1:-1", ":5"])
def test_overrides_that_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_overrides(text)


def test_overrides_of_both_kinds_of_addresses() -> None:
    assert parse_overrides(" 10.0.0.1:5, 2001:db8::1:7 ,") == {"10.0.0.1": 5, "2001:db8::1": 7}


def test_connections_over_the_rate_wait_for_their_turn() -> None:
    gateway = make_gateway(max_connection_creation_rate=1)
    doors = [gateway.connect() for _ in range(13)]
    assert [serves(door) for door in doors] == [True] * 10 + [False] * 3
    assert all(door.transport.is_open for door in doors)
    assert not doors[12].transport.is_reading
    gateway.clock.advance(1.2)
    assert len(doors[10].frames()) == 1
    assert doors[10].transport.is_reading
    gateway.clock.advance(20)
    assert len(doors[12].frames()) == 1
    assert gateway.shared.refusals.counts == {}


def test_who_floods_makes_another_address_wait_for_one_place_only() -> None:
    gateway = make_gateway(max_connection_creation_rate=10)
    flood = [gateway.connect(host="10.0.0.1") for _ in range(400)]
    assert sum(door.transport.is_open for door in flood) == 100 + WAITING_OF_ONE_MAX
    other = gateway.connect(host="10.0.0.2")
    assert not serves(other)
    gateway.clock.advance(0.3)
    assert len(other.frames()) == 1
    assert gateway.shared.refusals.counts == {"too-fast": 400 - 100 - WAITING_OF_ONE_MAX}


def test_who_has_left_while_waiting_leaves_its_place() -> None:
    gateway = make_gateway(max_connection_creation_rate=1, max_connections_per_ip=13)
    doors = [gateway.connect() for _ in range(13)]
    for door in doors[10:12]:
        door.lose()
    gateway.clock.advance(1.2)
    assert serves(doors[12])
    doors[12].lose()
    again = gateway.connect()
    assert again.transport.is_open


def test_an_address_over_its_quota_of_connections_is_closed_at_once() -> None:
    gateway = make_gateway()
    gateway.shared.quotas.index.put(QuotaEntity(ip=DEFAULT_NAME), {"connection_creation_rate": 2.0})
    doors = [gateway.connect(host="10.0.0.1") for _ in range(30)]
    assert sum(door.transport.is_open for door in doors) == 20
    assert serves(gateway.connect(host="10.0.0.2"))
    assert gateway.shared.refusals.counts == {"too-fast-of-one-address": 10}
    gateway.clock.advance(5)
    assert serves(gateway.connect(host="10.0.0.1")), "what was refused does not count"


def test_a_listener_has_its_own_limits() -> None:
    gateway = make_gateway()
    small = replace(PLAIN, max_connections=2)
    assert serves(gateway.connect(small))
    assert serves(gateway.connect(small))
    assert not serves(gateway.connect(small))
    assert serves(gateway.connect())
    slow = replace(PLAIN, max_connection_creation_rate=1)
    doors = [gateway.connect(slow) for _ in range(12)]
    assert [serves(door) for door in doors] == [True] * 10 + [False] * 2
    gateway.clock.advance(5)
    assert [len(door.frames()) for door in doors[10:]] == [1, 1]


def test_a_listener_without_a_limit_does_not_wait_for_one_that_has_one() -> None:
    """Else who floods the listener of the outside keeps the machines of the inside out."""
    gateway = make_gateway()
    outside = replace(PLAIN, max_connection_creation_rate=1)
    inside = replace(PLAIN)
    flood = [
        gateway.connect(outside, host=f"10.0.{number}.{address}")
        for address in range(20)
        for number in range(WAITING_OF_ONE_MAX + 1)
    ]
    assert not flood[-1].transport.is_open
    assert serves(gateway.connect(inside, host="10.1.0.1"))
    assert serves(gateway.connect(inside, host="10.0.0.1"))


def test_two_listeners_with_limits_do_not_wait_for_each_other() -> None:
    gateway = make_gateway()
    outside = replace(PLAIN, max_connection_creation_rate=1)
    inside = replace(PLAIN, max_connection_creation_rate=10)
    for number in range(WAITING_OF_ONE_MAX):
        gateway.connect(outside, host=f"10.0.0.{number}")
    doors = [gateway.connect(inside, host="10.0.0.1") for _ in range(110)]
    gateway.clock.advance(1.2)
    assert [serves(door) for door in doors] == [True] * 110
