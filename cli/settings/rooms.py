"""From resolved settings to what each room obeys: a field is the setting of its name.

A field ``message_max_bytes`` is the setting ``message.max.bytes``; a room that needs a setting
adds a field, and the table an entry.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, TypeVar

from cli.settings.setting import Address, SettingsError, Value
from cli.settings.sources import Resolved

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Room = TypeVar("Room", bound=DataclassInstance)

_OTHER_NAMES = {
    "rack": "broker.rack",
    "advertised_host": "advertised.kafka",
    "advertised_port": "advertised.kafka",
}

OF_GROUPS_ALONE = ("assignor_configs",)
"""Fields for which the server has no setting."""


def compute_setting_name(field: str) -> str:
    """The name of the setting that a field of a room stands for."""
    return _OTHER_NAMES.get(field, field.replace("_", "."))


def compute_room(room: type[Room], resolved: Resolved) -> Room:
    """The settings of one room. Raises ``SettingsError`` where the room finds they do not fit."""
    fields: dict[str, Any] = {
        field.name: _compute_field(field.name, resolved)
        for field in dataclasses.fields(room)
        if field.name not in OF_GROUPS_ALONE
    }
    try:
        return room(**fields)
    except ValueError as error:
        raise SettingsError([str(error)]) from error


def _compute_field(field: str, resolved: Resolved) -> Value:
    value = resolved.values[compute_setting_name(field)]
    if isinstance(value, Address):
        return value.host if field.endswith("_host") else value.port
    return value
