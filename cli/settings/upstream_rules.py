"""Rules of the settings of a cluster that Muster stands in front of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import re2

from cli.settings.listeners.listener_rules import compute_listener_plan, is_any_address
from cli.settings.setting import Address, Value, parse_address
from cli.settings.tables.upstream_table import (
    BOOTSTRAP,
    PREFIX,
    RELAY_PORTS,
    STANDBY_NODES,
    TAKEOVER_GROUPS,
)
from model.secret import Secret
from security.endpoints import SecurityProtocol
from security.sasl.conversation import OAUTHBEARER

PORT_MAX: Final = 65_535
_NEEDS_CLUSTER: Final = (RELAY_PORTS, TAKEOVER_GROUPS, STANDBY_NODES)
_TOKEN_URL: Final = PREFIX + "sasl.oauthbearer.token.endpoint.url"


def parse_relay_ports(text: str) -> range:
    """The ports of ``19092-19099`` or of ``19092``. Raises ``ValueError`` with the reason."""
    first, dash, last = text.partition("-")
    numbers = [each.strip() for each in ((first, last) if dash else (first, first))]
    if not all(each.isascii() and each.isdigit() for each in numbers):
        raise ValueError(f"{text} is not a range of ports such as 19092-19099")
    low, high = (int(each) for each in numbers)
    if not 0 < low <= high <= PORT_MAX:
        raise ValueError(f"{text} is not a range of ports between 1 and {PORT_MAX}")
    return range(low, high + 1)


def check_upstream(values: Mapping[str, Value]) -> list[str]:
    """One line for each mistake."""
    servers = values[BOOTSTRAP]
    if servers is None:
        return [
            f"{name} has no effect without {BOOTSTRAP}"
            for name in _NEEDS_CLUSTER
            if values[name] is not None
        ]
    assert isinstance(servers, tuple)
    assert not isinstance(servers, Address)
    return [
        *_check_addresses(BOOTSTRAP, servers),
        *_check_addresses(STANDBY_NODES, values[STANDBY_NODES] or ()),
        *_check_ports(values),
        *_check_pattern(values),
        *_check_identity(values),
        *_check_authorizer(values),
        *_check_own_address(values),
    ]


def _check_addresses(name: str, servers: Value) -> list[str]:
    mistakes = []
    assert isinstance(servers, tuple)
    for server in map(str, servers):
        try:
            address = parse_address(server)
        except ValueError as error:
            mistakes.append(f"{name}: {error}")
            continue
        if address is not None and not address.port:
            mistakes.append(f"{name}: {server} has no port")
    return mistakes


def _check_ports(values: Mapping[str, Value]) -> list[str]:
    ports = values[RELAY_PORTS]
    if ports is None:
        return [f"{BOOTSTRAP} needs a port for each broker: set {RELAY_PORTS}=19092-19099"]
    try:
        parse_relay_ports(str(ports))
    except ValueError as error:
        return [f"{RELAY_PORTS}: {error}"]
    return []


def _check_pattern(values: Mapping[str, Value]) -> list[str]:
    pattern = values[TAKEOVER_GROUPS]
    if pattern is None:
        return []
    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(str(pattern), options)
    except re2.error as error:
        return [f"{TAKEOVER_GROUPS}: {pattern} is no regular expression of RE2: {error}"]
    return []


def _check_identity(values: Mapping[str, Value]) -> list[str]:
    protocol = SecurityProtocol(str(values[PREFIX + "security.protocol"]))
    mechanism = values[PREFIX + "sasl.mechanism"]
    shown = f"{PREFIX}security.protocol ({protocol.value})"
    if protocol.uses_sasl and mechanism is None:
        return [f"{shown} needs {PREFIX}sasl.mechanism"]
    if not protocol.uses_sasl:
        named = [] if mechanism is None else [f"{PREFIX}sasl.mechanism has no effect with {shown}"]
        return named + _check_tls(values, shown) if not protocol.uses_tls else named
    if mechanism == OAUTHBEARER:
        url = values[_TOKEN_URL]
        if url is None or not str(url).startswith("file:/"):
            return [f"{OAUTHBEARER} needs a token: set {_TOKEN_URL}=file:///PATH"]
    elif not isinstance(values[PREFIX + "sasl.jaas.config"], Secret):
        return [f"{mechanism} needs a user and a password: set {PREFIX}sasl.jaas.config"]
    return [] if protocol.uses_tls else _check_tls(values, shown)


def _check_tls(values: Mapping[str, Value], shown: str) -> list[str]:
    """Files that would be left out in silence."""
    names = (PREFIX + "ssl.truststore.location", PREFIX + "ssl.keystore.location")
    return [f"{name} has no effect with {shown}" for name in names if values[name] is not None]


def _check_authorizer(values: Mapping[str, Value]) -> list[str]:
    name = "authorizer.class.name"
    if values[name] is None:
        return []
    return [f"{name} has no effect with {BOOTSTRAP}: the ACLs of the cluster decide"]


def _check_own_address(values: Mapping[str, Value]) -> list[str]:
    """Responses that pass through the relays name Muster's node: it needs an address."""
    endpoints = compute_listener_plan(values).endpoints
    if not endpoints:
        return []
    first = endpoints[0]
    if first.advertised_host is None and is_any_address(first.host):
        return [
            f"{BOOTSTRAP} with a listener on {first.host}: clients need an address to connect to, "
            "set advertised.kafka=HOST:PORT"
        ]
    if not first.port and first.advertised_port is None:
        return [f"{BOOTSTRAP} needs a Kafka listener with a port of its own: set listen.kafka"]
    return []
