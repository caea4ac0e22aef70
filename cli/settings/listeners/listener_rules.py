"""Which listeners the Kafka wire has, from the settings; every mistake in them is one line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

from cli.settings.listeners.endpoint_lists import (
    PROTOCOL_NAMES,
    Entry,
    parse_entries,
    parse_protocol_map,
)
from cli.settings.listeners.listener_tls import (
    compute_prefix_name,
    compute_tls_settings,
    find_prefixed_listeners,
)
from cli.settings.setting import Address, Value
from security.endpoints import Endpoint, SecurityProtocol
from security.loopback import is_loopback
from security.tls.tls_checks import check_tls_settings
from security.tls.tls_settings import ClientAuth

OWN_AND_KAFKAS: Final = (
    ("listen.kafka", "listeners"),
    ("advertised.kafka", "advertised.listeners"),
)
"""Settings of one meaning; ours decides where both are set."""

DOORS: Final = frozenset({"GRPC", "HTTP"})
"""The listeners beside those of the Kafka wire, as settings of one listener name them."""

_ALL_ADDRESSES: Final = ("", "0.0.0.0", "::")
_CONTROLLER: Final = "CONTROLLER"


@dataclass(frozen=True, slots=True)
class ListenerPlan:
    """The listeners, or what is wrong with them; ``warnings`` are lines about what is left out."""

    endpoints: tuple[Endpoint, ...]
    mistakes: tuple[str, ...]
    warnings: tuple[str, ...]


def is_any_address(host: str) -> bool:
    """Whether ``host`` stands for all addresses of the machine."""
    return host in _ALL_ADDRESSES


def compute_listener_plan(values: Mapping[str, Value]) -> ListenerPlan:
    """The listeners of ``listen.kafka`` with their advertised addresses."""
    setting = _compute_label(values, *OWN_AND_KAFKAS[0])
    protocols, mistakes = parse_protocol_map(_list(values, "listener.security.protocol.map"))
    entries, more = parse_entries(setting, _list(values, "listen.kafka"))
    mistakes += more
    controllers = _find_controllers(values, protocols)
    warnings = [
        f"the listener {entry.name} of {setting} is left out: a coordinator has no controllers"
        for entry in entries
        if entry.name in controllers
    ]
    endpoints = []
    for entry in entries:
        if entry.name in controllers:
            continue
        found = _compute_endpoint(entry, protocols)
        if isinstance(found, Endpoint):
            endpoints.append(found)
        else:
            mistakes.append(f"{setting} ({entry.text}): {found}")
    if not endpoints and not mistakes:
        mistakes.append(f"{setting} must not be empty: write HOST:PORT, or NAME://HOST:PORT")
    mistakes += _check_pairs(setting, endpoints)
    endpoints, more = _advertise(values, endpoints, controllers)
    mistakes += more
    for endpoint in endpoints:
        mistakes += check_endpoint(setting, values, endpoint)
    known = {endpoint.name for endpoint in endpoints}
    idle = find_prefixed_listeners(values, known | DOORS)
    if idle and not mistakes:
        warnings.append(f"these settings have no effect, there is no such listener: {idle}")
    return ListenerPlan(tuple(endpoints), tuple(mistakes), tuple(warnings))


def _compute_label(values: Mapping[str, Value], own: str, kafkas: str) -> str:
    """The setting that the user has written."""
    return kafkas if values[kafkas] is not None and values[kafkas] == values[own] else own


def _list(values: Mapping[str, Value], name: str) -> tuple[str, ...]:
    value = values[name]
    return value if isinstance(value, tuple) and not isinstance(value, Address) else ()


def _find_controllers(
    values: Mapping[str, Value], protocols: Mapping[str, SecurityProtocol]
) -> frozenset[str]:
    named = {name.upper() for name in _list(values, "controller.listener.names")}
    if not named and _CONTROLLER not in protocols:
        named = {_CONTROLLER}
    return frozenset(named)


def _compute_endpoint(entry: Entry, protocols: Mapping[str, SecurityProtocol]) -> Endpoint | str:
    """The listener, or what is wrong with it."""
    name = entry.name or SecurityProtocol.PLAINTEXT.value
    mapped = protocols.get(name) or PROTOCOL_NAMES.get(name)
    protocol = entry.protocol or mapped
    if protocol is None:
        return (
            f"which protocol does {name} have? Write {name}:PROTOCOL://HOST:PORT, or put it into "
            "listener.security.protocol.map"
        )
    if name in protocols and protocol is not protocols[name]:
        return f"listener.security.protocol.map says that {name} is {protocols[name].value}"
    return Endpoint(name, protocol, entry.host, entry.port)


def _check_pairs(setting: str, endpoints: list[Endpoint]) -> list[str]:
    mistakes = []
    for one, other in combinations(endpoints, 2):
        if compute_prefix_name(one.name) == compute_prefix_name(other.name):
            mistakes.append(
                f"{setting}: two listeners are named {other.name}: each needs a name of its own"
            )
        if one.port and one.port == other.port and _overlap(one.host, other.host):
            mistakes.append(f"{setting}: {one.name} and {other.name} have the same port {one.port}")
    return mistakes


def _overlap(one: str, other: str) -> bool:
    return one == other or one in _ALL_ADDRESSES or other in _ALL_ADDRESSES


def _advertise(
    values: Mapping[str, Value], endpoints: list[Endpoint], controllers: frozenset[str]
) -> tuple[list[Endpoint], list[str]]:
    """The listeners with their advertised addresses, and the mistakes in these."""
    setting = _compute_label(values, *OWN_AND_KAFKAS[1])
    entries, mistakes = parse_entries(setting, _list(values, "advertised.kafka"))
    at = {endpoint.name: number for number, endpoint in enumerate(endpoints)}
    found = list(endpoints)
    taken: set[str] = set()
    for entry in entries:
        if entry.name in controllers or not endpoints:
            continue
        name = entry.name or endpoints[0].name
        if entry.name is None and len(endpoints) > 1:
            mistake = "there are several listeners: write NAME://HOST:PORT"
        elif name not in at:
            mistake = f"no listener is named {name}"
        elif name in taken:
            mistake = f"{name} has an address already"
        elif entry.port == 0:
            mistake = "clients cannot connect to port 0"
        elif entry.host in _ALL_ADDRESSES[1:]:
            mistake = f"clients cannot connect to {entry.host}"
        else:
            taken.add(name)
            found[at[name]] = replace(
                endpoints[at[name]],
                advertised_host=entry.host or None,
                advertised_port=entry.port,
            )
            continue
        mistakes.append(f"{setting} ({entry.text}): {mistake}")
    return found, mistakes


def check_endpoint(setting: str, values: Mapping[str, Value], endpoint: Endpoint) -> list[str]:
    """Check one listener: what its protocol lacks, and whether anybody could come in."""
    mistakes = []
    authenticates = endpoint.protocol.uses_sasl
    if endpoint.protocol.uses_tls:
        tls = compute_tls_settings(values, endpoint)
        mistakes += [f"{setting} ({endpoint.name}): {line}" for line in check_tls_settings(tls)]
        authenticates |= tls.client_auth is ClientAuth.REQUIRED
    is_open = not authenticates and not is_loopback(endpoint.host)
    if is_open and not values["allow.unauthenticated"]:
        address = Address(endpoint.host, endpoint.port)
        mistakes.append(
            f"{setting} ({address}): clients of {endpoint.name} do not authenticate; use SASL_SSL, "
            "or SSL with ssl.client.auth=required; to listen on an address other than loopback "
            "anyway, add --allow-unauthenticated"
        )
    return mistakes
