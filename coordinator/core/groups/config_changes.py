"""Settings that a group has of its own: what a change of them comes to, and what is then in force.

A change is checked as a whole before anything is written. What is stored stays as it was set; if
the server's bounds move later, it is clamped where it is read (KIP-1240).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from coordinator.core.state.outcome import ApplyGroupSettings, Outcome
from model.commands import AlterGroupConfigs, ConfigChange, ConfigOperation
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
from model.responses import DescribedConfig, Done, GroupConfigsResponse
from muster.assignors.names import BUILT_IN_ASSIGNORS

OwnConfigs = Mapping[str, str]
"""What a group has of its own, by name."""

_NUMBER = re.compile(r"[+-]?\d{1,100}")
"""Python refuses to read one of some thousand digits."""

_PARSERS: Mapping[str, Callable[[list[str]], object]] = {PINS: parse_pins, WEIGHTS: parse_weights}


# ------------------------------------------------------------------------------------- changes


def handle_alter_group_configs(
    settings: CoordinatorSettings, own: OwnConfigs, longest_ms: int, command: AlterGroupConfigs
) -> Outcome:
    """The settings after all changes, in one side record; none where nothing is left of them.

    ``longest_ms`` is the session timeout that was shortened before, 0 for none: it is kept as long
    as it is longer than what is in force.
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
    """There are no settings for all groups but those of the server."""
    if not group_id:
        raise InvalidRequest("Default group resources are not allowed.")
    if len(group_id.encode()) > settings.group_id_max_bytes:
        raise InvalidRequest(f"The group id is longer than {settings.group_id_max_bytes} bytes.")


def compute_configs_after(
    settings: CoordinatorSettings, own: OwnConfigs, changes: Iterable[ConfigChange]
) -> dict[str, str]:
    """What the group has of its own after the changes. Raises what is wrong with them."""
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
    """The text in the form that it is shown in; raises what is wrong with it in itself."""
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
        raise InvalidConfig(invalid + "The list has an entry twice")
    choices = compute_assignor_choices(settings)
    for part in parts:
        if part not in choices:
            raise InvalidConfig(f"{invalid}Entries must be of: {', '.join(choices)}")
    return ",".join(parts)


def compute_assignor_choices(settings: CoordinatorSettings) -> tuple[str, ...]:
    """The assignors that a group may list: those that are built in, and what the server lists."""
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


# ------------------------------------------------------------------------------- what is in force


def compute_server_value(settings: CoordinatorSettings, config: GroupConfig) -> str:
    """What is in force for groups that have no value of their own."""
    if config.setting is None:
        return config.default
    found = find_server_value(settings, config.setting)
    if found is None:
        return config.default
    return ",".join(found) if isinstance(found, tuple) else str(found)


def compute_value(settings: CoordinatorSettings, own: OwnConfigs, config: GroupConfig) -> str:
    """What is in force for a group, within the bounds as they are now."""
    text = own.get(config.name)
    if text is None:
        return compute_server_value(settings, config)
    if config.lower is not None:
        text = str(max(int(text), _bound(settings, config.lower)))
    if config.upper is not None:
        text = str(min(int(text), _bound(settings, config.upper)))
    return text


def compute_group_settings(settings: CoordinatorSettings, own: OwnConfigs) -> CoordinatorSettings:
    """The settings that the core obeys for a group that has these of its own."""
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
    """Without those that the server has no more; if none is left, the server's."""
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
    """A store may have a weight that is refused today: then all partitions weigh the same."""
    try:
        return parse_weights(_split(text))
    except ValueError:
        return ()


def compute_described_configs(
    settings: CoordinatorSettings, own: OwnConfigs, group_id: GroupId
) -> GroupConfigsResponse:
    """Every setting of the group: what is in force, and what of it is the group's own."""
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
