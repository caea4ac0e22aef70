"""Group configs: changes, their validation, and the effective settings.

A change is validated as a whole before anything is written. Values are stored as they were set; if
the server's bounds move later, they are clamped when they are read (KIP-1240).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from coordinator.core.state.outcome import ApplyGroupSettings, Outcome
from model.commands.configs import AlterGroupConfigs, ConfigChange, ConfigOperation
from model.configs.assignor_configs import AssignorConfigs, Weight, parse_pins, parse_weights
from model.configs.coordinator_settings import CoordinatorSettings
from model.configs.group_configs import (
    ASSIGNORS,
    CO_PARTITION,
    GROUP_CONFIGS,
    INT_MAX,
    MOVE_BUDGET,
    PINS,
    SERVED_CONFIGS,
    SESSION_RULES,
    SKEW_LIMIT,
    WEIGHTS,
    Bound,
    ConfigType,
    GroupConfig,
    compute_field_name,
    find_server_value,
)
from model.errors import InvalidConfig, InvalidRequest
from model.ids import GroupId
from model.log.side_records import GroupConfigsSideKey, GroupConfigsSideValue, SideRecord
from model.responses.configs import DescribedConfig, GroupConfigsResponse
from model.responses.response import Done
from muster.assignors.names import BUILT_IN_ASSIGNORS

OwnConfigs = Mapping[str, str]
"""The configs that are set on a group, by name."""

_NUMBER = re.compile(r"[+-]?\d{1,100}")
"""Bounded, because Python refuses to parse an ``int`` of several thousand digits."""

_PARSERS: Mapping[str, Callable[[list[str]], object]] = {PINS: parse_pins, WEIGHTS: parse_weights}


# ------------------------------------------------------------------------------------- changes


def handle_alter_group_configs(
    settings: CoordinatorSettings, own: OwnConfigs, longest_ms: int, command: AlterGroupConfigs
) -> Outcome:
    """Write the group's configs after all changes in one side record, or its tombstone.

    ``longest_ms`` is the longest session timeout from before a shortening, 0 for none. The record
    keeps it as long as it exceeds the effective session timeout.
    """
    check_group_name(settings, command.group_id)
    after = compute_configs_after(settings, own, command.changes)
    if command.validate_only or after == own:
        return Outcome(response=Done())
    before = compute_group_settings(settings, own)
    longest_ms = max(longest_ms, before.group_consumer_session_timeout_ms)
    if longest_ms <= compute_group_settings(settings, after).group_consumer_session_timeout_ms:
        longest_ms = 0
    value = None
    if after or longest_ms:
        value = GroupConfigsSideValue(tuple(sorted(after.items())), longest_ms)
    return Outcome(
        side=(SideRecord(GroupConfigsSideKey(command.group_id), value),),
        response=Done(),
        effects=(
            ApplyGroupSettings(
                command.group_id, before.group_consumer_assignors, before.assignor_configs
            ),
        ),
    )


def check_group_name(settings: CoordinatorSettings, group_id: GroupId) -> None:
    """Raise ``InvalidRequest`` for a group id that is empty or too long.

    Group configs have no defaults resource: the server's settings are the defaults.
    """
    if not group_id:
        raise InvalidRequest("Default group resources are not allowed.")
    if len(group_id.encode()) > settings.group_id_max_bytes:
        raise InvalidRequest(f"The group id is longer than {settings.group_id_max_bytes} bytes.")


def compute_configs_after(
    settings: CoordinatorSettings, own: OwnConfigs, changes: Iterable[ConfigChange]
) -> dict[str, str]:
    """The group's configs after the changes.

    Raises ``InvalidRequest`` or ``InvalidConfig`` for an invalid change.
    """
    changes = tuple(changes)
    if len({change.name for change in changes}) < len(changes):
        raise InvalidRequest("Error due to duplicate config keys")
    after = dict(own)
    for change in changes:
        _change(settings, after, change)
    for name in after:
        if name not in GROUP_CONFIGS:
            raise InvalidConfig(f"Unknown group config name: {name}")
    after = {name: _normalise(settings, GROUP_CONFIGS[name], text) for name, text in after.items()}
    for name, text in after.items():
        _check_bounds(settings, GROUP_CONFIGS[name], text)
    _check_rules(settings, after)
    return after


def _change(settings: CoordinatorSettings, after: dict[str, str], change: ConfigChange) -> None:
    name = change.name
    if change.operation is ConfigOperation.DELETE:
        after.pop(name, None)
        return
    if change.value is None:
        raise InvalidRequest(f"Null value not supported for : {name}")
    if change.operation is ConfigOperation.SET:
        after[name] = change.value
        return
    config = GROUP_CONFIGS.get(name)
    if config is None or config.config_type is not ConfigType.LIST:
        raise InvalidConfig(
            f"Can't {change.operation.name} to key {name} because its type is not LIST."
        )
    old = _split(after.get(name, compute_server_value(settings, config)))
    given = _split(change.value)
    if change.operation is ConfigOperation.APPEND:
        after[name] = ",".join([*old, *(part for part in given if part not in old)])
    else:
        after[name] = ",".join(part for part in old if part not in given)


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _normalise(settings: CoordinatorSettings, config: GroupConfig, text: str) -> str:
    """The value in canonical form; raises ``InvalidConfig`` if it is invalid for its type."""
    shown = text
    text = text.strip()
    invalid = f"Invalid value {shown} for configuration {config.name}: "
    match config.config_type:
        case ConfigType.INT:
            if _NUMBER.fullmatch(text) is None or not -INT_MAX - 1 <= int(text) <= INT_MAX:
                raise InvalidConfig(invalid + "Not a number of type INT")
            if int(text) < config.minimum:
                raise InvalidConfig(f"{invalid}Value must be at least {config.minimum}")
            if int(text) > config.maximum:
                raise InvalidConfig(f"{invalid}Value must be no more than {config.maximum}")
            return str(int(text))
        case ConfigType.BOOLEAN:
            if text.lower() not in ("true", "false"):
                raise InvalidConfig(invalid + "Expected value to be either true or false")
            return text.lower()
        case ConfigType.LIST:
            return _normalise_list(settings, config, text, invalid)
        case ConfigType.STRING:
            if config.choices and text not in config.choices:
                choices = ", ".join(config.choices)
                raise InvalidConfig(f"{invalid}String must be one of: {choices}")
            if config.pattern is not None and re.fullmatch(config.pattern, text) is None:
                raise InvalidConfig(f"{invalid}The value {config.form}.")
            return text


def _normalise_list(
    settings: CoordinatorSettings, config: GroupConfig, text: str, invalid: str
) -> str:
    parts = _split(text)
    parse = _PARSERS.get(config.name)
    if parse is not None:
        try:
            parse(parts)
        except ValueError as error:
            raise InvalidConfig(f"{invalid}{error}") from error
        return ",".join(parts)
    if not parts:
        raise InvalidConfig(invalid + "The list must not be empty")
    if len(set(parts)) < len(parts):
        raise InvalidConfig(invalid + "The list must not have duplicate entries")
    choices = compute_assignor_choices(settings)
    for part in parts:
        if part not in choices:
            raise InvalidConfig(f"{invalid}String must be one of: {', '.join(choices)}")
    return ",".join(parts)


def compute_assignor_choices(settings: CoordinatorSettings) -> tuple[str, ...]:
    """The assignors that a group may list: the built-in ones, and those the server lists."""
    return tuple(dict.fromkeys((*BUILT_IN_ASSIGNORS, *settings.group_consumer_assignors)))


def _check_bounds(settings: CoordinatorSettings, config: GroupConfig, text: str) -> None:
    lower, upper = config.lower, config.upper
    if lower is not None and int(text) < _bound(settings, lower):
        raise InvalidConfig(f"{config.name} must be greater than or equal to {lower.setting}")
    if upper is not None and int(text) > _bound(settings, upper):
        raise InvalidConfig(f"{config.name} must be less than or equal to {upper.setting}")


def _bound(settings: CoordinatorSettings, bound: Bound) -> int:
    found = find_server_value(settings, bound.setting)
    return found if isinstance(found, int) else bound.default


def _check_rules(settings: CoordinatorSettings, own: OwnConfigs) -> None:
    for session, heartbeat in SESSION_RULES:
        timeout_ms, interval_ms = (
            int(compute_value(settings, own, GROUP_CONFIGS[name])) for name in (session, heartbeat)
        )
        if timeout_ms <= interval_ms:
            raise InvalidConfig(f"{session} must be greater than {heartbeat}")


# ------------------------------------------------------------------------------ effective values


def compute_server_value(settings: CoordinatorSettings, config: GroupConfig) -> str:
    """The value for groups that do not set the config."""
    if config.setting is None:
        return config.default
    found = find_server_value(settings, config.setting)
    if found is None:
        return config.default
    return ",".join(found) if isinstance(found, tuple) else str(found)


def compute_value(settings: CoordinatorSettings, own: OwnConfigs, config: GroupConfig) -> str:
    """The effective value for a group, clamped to the current bounds."""
    text = own.get(config.name)
    if text is None:
        return compute_server_value(settings, config)
    if config.lower is not None:
        text = str(max(int(text), _bound(settings, config.lower)))
    if config.upper is not None:
        text = str(min(int(text), _bound(settings, config.upper)))
    return text


def compute_group_settings(settings: CoordinatorSettings, own: OwnConfigs) -> CoordinatorSettings:
    """The effective settings of a group with these configs."""
    if not own:
        return settings

    changed: dict[str, Any] = {
        compute_field_name(config.setting): _compute_served(settings, own, config)
        for config in SERVED_CONFIGS
        if config.setting is not None
    }
    return replace(settings, **changed, assignor_configs=_compute_assignor_configs(settings, own))


def _compute_served(
    settings: CoordinatorSettings, own: OwnConfigs, config: GroupConfig
) -> int | str | tuple[str, ...]:
    """The value in force, as the server's setting of the same meaning holds it."""
    if config.name == ASSIGNORS:
        return _compute_assignors(settings, own)
    text = compute_value(settings, own, config)
    return int(text) if config.config_type is ConfigType.INT else text


def _compute_assignors(settings: CoordinatorSettings, own: OwnConfigs) -> tuple[str, ...]:
    """The group's assignors that the server still has; if none is left, the server's list."""
    choices = compute_assignor_choices(settings)
    listed = _split(compute_value(settings, own, GROUP_CONFIGS[ASSIGNORS]))
    found = tuple(name for name in listed if name in choices)
    return found or settings.group_consumer_assignors


def _compute_assignor_configs(settings: CoordinatorSettings, own: OwnConfigs) -> AssignorConfigs:
    def text(name: str) -> str:
        return compute_value(settings, own, GROUP_CONFIGS[name])

    return AssignorConfigs(
        parse_pins(_split(text(PINS))),
        _parse_stored_weights(text(WEIGHTS)),
        text(CO_PARTITION) == "true",
        int(text(MOVE_BUDGET)),
        int(text(SKEW_LIMIT)) / 100,
    )


def _parse_stored_weights(text: str) -> tuple[Weight, ...]:
    """Parse stored weights; none if the store has one that is invalid by today's rules."""
    try:
        return parse_weights(_split(text))
    except ValueError:
        return ()


def compute_described_configs(
    settings: CoordinatorSettings, own: OwnConfigs, group_id: GroupId
) -> GroupConfigsResponse:
    """All configs of the group: the effective value, the one set on the group, the default."""
    return GroupConfigsResponse(
        group_id,
        tuple(
            DescribedConfig(
                config.name,
                compute_value(settings, own, config),
                own.get(config.name),
                compute_server_value(settings, config),
            )
            for config in GROUP_CONFIGS.values()
        ),
    )
