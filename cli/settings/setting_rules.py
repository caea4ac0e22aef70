"""Rules between settings, which Kafka's broker also checks when it starts."""

from __future__ import annotations

from collections.abc import Container, Mapping

from cli.settings.listeners.door_rules import check_doors
from cli.settings.listeners.listener_rules import OWN_AND_KAFKAS, compute_listener_plan
from cli.settings.setting import Value, parse_address
from cli.settings.tables.security_table import parse_super_users
from cli.settings.tables.traces_table import ENDPOINT
from cli.settings.tables.upstream_table import BOOTSTRAP
from cli.settings.upstream_rules import check_upstream
from model.configs.group_configs import SERVED_CONFIGS
from security.quotas.address_limits import parse_overrides

_BOUNDED = tuple(
    (config.setting, config.lower.setting, config.upper.setting)
    for config in SERVED_CONFIGS
    if config.setting and config.lower and config.upper
)
"""Settings with their lower and upper bounds, which are settings too."""

_SESSION = "group.consumer.session.timeout.ms"
_HEARTBEAT = "group.consumer.heartbeat.interval.ms"


def check_rules(values: Mapping[str, Value]) -> list[str]:
    """Check the values against each other; return one line for each mistake."""
    return [
        *_check_bounds(values),
        *_check_relations(values),
        *_check_listeners(values),
        *_check_access(values),
        *_check_overrides(values),
        *check_upstream(values),
        *_check_traces(values),
    ]


def compute_followers(values: Mapping[str, Value], chosen: Container[str]) -> dict[str, Value]:
    """Adjust settings that nobody has ``chosen``, so that a timeout can be set on its own.

    Bounds move to include a chosen value; the heartbeat interval is reduced to a third of a chosen
    session timeout. What is refused is logged. Kafka's names of listeners decide where ours do not.
    """
    found = dict(values)
    for own, kafkas in OWN_AND_KAFKAS:
        if kafkas in chosen and own not in chosen:
            found[own] = values[kafkas]
    session = _number(values, _SESSION)
    if _SESSION in chosen and _HEARTBEAT not in chosen:
        found[_HEARTBEAT] = min(_number(values, _HEARTBEAT), max(session // 3, 1))
    for name, lower, upper in _BOUNDED:
        value = _number(found, name)
        for bound, compute in ((lower, min), (upper, max)):
            if bound not in chosen:
                found[bound] = compute(_number(found, bound), value)
    refuses = values["authorizer.class.name"] is not None or values["sasl.enabled.mechanisms"]
    if "audit.log" not in chosen and refuses:
        # As Kafka logs refusals unless it is told not to.
        found["audit.log"] = "stdout"
    return {name: value for name, value in found.items() if value != values[name]}


def _check_bounds(values: Mapping[str, Value]) -> list[str]:
    mistakes = []
    for name, lower, upper in _BOUNDED:
        value, minimum, maximum = (_number(values, key) for key in (name, lower, upper))
        if minimum > maximum:
            mistakes.append(f"{lower} ({minimum}) is above {upper} ({maximum})")
        elif value < minimum:
            mistakes.append(f"{name} ({value}) is below {lower} ({minimum})")
        elif value > maximum:
            mistakes.append(f"{name} ({value}) is above {upper} ({maximum})")
    return mistakes


def _check_relations(values: Mapping[str, Value]) -> list[str]:
    mistakes = []
    session = _number(values, "group.consumer.session.timeout.ms")
    heartbeat = _number(values, "group.consumer.heartbeat.interval.ms")
    if session <= heartbeat:
        mistakes.append(
            f"group.consumer.session.timeout.ms ({session}) must be above "
            f"group.consumer.heartbeat.interval.ms ({heartbeat})"
        )
    protocols = values["group.coordinator.rebalance.protocols"]
    assert isinstance(protocols, tuple)
    if "classic" not in protocols:
        mistakes.append("group.coordinator.rebalance.protocols must contain classic")
    if _number(values, "grpc.page.size") > _number(values, "grpc.page.size.max"):
        mistakes.append("grpc.page.size must not be above grpc.page.size.max")
    if _number(values, "gateway.park.ms") > _number(values, "gateway.park.max.ms"):
        mistakes.append("gateway.park.ms must not be above gateway.park.max.ms")
    return mistakes


def _check_listeners(values: Mapping[str, Value]) -> list[str]:
    return [*compute_listener_plan(values).mistakes, *check_doors(values)]


def _check_access(values: Mapping[str, Value]) -> list[str]:
    text = values["super.users"] or ""
    assert isinstance(text, str)
    try:
        super_users = parse_super_users(text)
    except ValueError as error:
        return [f"super.users: {error}"]
    names = ("super.users", "allow.everyone.if.no.acl.found")
    has_effect = bool(values["authorizer.class.name"] or values[BOOTSTRAP])
    if not has_effect and (super_users or values[names[1]]):
        chosen = names[0] if super_users else names[1]
        return [f"{chosen} has no effect without authorizer.class.name=StandardAuthorizer"]
    return []


def _check_overrides(values: Mapping[str, Value]) -> list[str]:
    name = "max.connections.per.ip.overrides"
    try:
        parse_overrides(str(values[name] or ""))
    except ValueError as error:
        return [f"{name}: {error}"]
    return []


def _check_traces(values: Mapping[str, Value]) -> list[str]:
    endpoint = values[ENDPOINT]
    if endpoint is None:
        return []
    scheme, separator, rest = str(endpoint).partition("://")
    try:
        is_address = parse_address(rest) is not None
    except ValueError:
        is_address = False
    if separator and scheme in ("http", "https") and is_address:
        return []
    return [f"{ENDPOINT}: {endpoint} is not http://HOST:PORT or https://HOST:PORT"]


def _number(values: Mapping[str, Value], name: str) -> int:
    value = values[name]
    assert isinstance(value, int), name
    return value
