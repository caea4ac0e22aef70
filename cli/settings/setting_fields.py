"""The rooms whose settings are in the table: their fields are settings, with the same defaults."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from cli.settings.setting import INT_MAX, Kind, Scope, Setting, Value
from coordinator.service.settings import GrpcSettings
from gateway.settings import GatewaySettings
from gateway.topics.settings import TopicSettings
from model.configs.coordinator_settings import CoordinatorSettings

ROOMS: Final = (CoordinatorSettings, TopicSettings, GatewaySettings, GrpcSettings)

_OTHER_NAMES = {
    "rack": "broker.rack",
    "advertised_host": "advertised.kafka",
    "advertised_port": "advertised.kafka",
}

OF_GROUPS_ALONE: Final = ("assignor_configs",)
"""Fields for which the server has no setting."""


def compute_setting_name(field: str) -> str:
    """The name of the setting that a field of a room stands for."""
    return _OTHER_NAMES.get(field, field.replace("_", "."))


_DEFAULTS: Final[dict[str, Value]] = {
    compute_setting_name(field.name): getattr(room(), field.name)
    for room in ROOMS
    for field in dataclasses.fields(room)
}


def of_room(
    name: str,
    kind: Kind,
    scope: Scope,
    doc: str,
    *,
    minimum: int = 0,
    maximum: int = INT_MAX,
    choices: tuple[str, ...] = (),
    **rest: Any,
) -> Setting:
    """A setting that a room obeys, with the default of the room's field."""
    default = _DEFAULTS[name]
    return Setting(name, kind, default, scope, doc, minimum, maximum, choices, **rest)
