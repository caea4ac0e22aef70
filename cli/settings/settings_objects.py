"""From resolved settings to what each room obeys: a field is the setting of its name.

A field ``message_max_bytes`` is the setting ``message.max.bytes``; a room that needs a setting
adds a field with its default, and the table an entry.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, TypeVar

from cli.settings.room_fields import OF_GROUPS_ALONE, compute_setting_name
from cli.settings.setting import Address, SettingsError, Value
from cli.settings.setting_sources import Resolved

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Room = TypeVar("Room", bound=DataclassInstance)


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
