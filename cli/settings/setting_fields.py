"""The settings classes of the server's parts: each field is a setting with the same default."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from cli.settings.setting import INT_MAX, Kind, Scope, Setting, Value
from coordinator.service.settings import GrpcSettings
from gateway.settings import GatewaySettings
from gateway.topics.settings import TopicSettings
from model.configs.coordinator_settings import CoordinatorSettings
from security.quotas.settings import QuotaSettings

SETTINGS_CLASSES: Final = (
    CoordinatorSettings,
    TopicSettings,
    GatewaySettings,
    GrpcSettings,
    QuotaSettings,
)

_OTHER_NAMES = {
    "rack": "broker.rack",
}

GROUP_ONLY: Final = ("assignor_configs",)
"""Fields that only groups have; the server has no setting for them."""


def compute_setting_name(field: str) -> str:
    """The name of the setting that a field holds."""
    return _OTHER_NAMES.get(field, field.replace("_", "."))


_DEFAULTS: Final[dict[str, Value]] = {
    compute_setting_name(field.name): getattr(settings(), field.name)
    for settings in SETTINGS_CLASSES
    for field in dataclasses.fields(settings)
}


def of_field(
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
    """Build a setting whose default is that of the field with its name in ``SETTINGS_CLASSES``."""
    default = _DEFAULTS[name]
    return Setting(name, kind, default, scope, doc, minimum, maximum, choices, **rest)
