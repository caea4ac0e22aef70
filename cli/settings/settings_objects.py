"""Builds the settings object of each part of the server from the resolved settings.

The field ``message_max_bytes`` holds the setting ``message.max.bytes``. To add a setting, add a
field with its default here and an entry to the table.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, TypeVar

from cli.settings.setting import SettingsError
from cli.settings.setting_fields import GROUP_ONLY, compute_setting_name
from cli.settings.setting_sources import Resolved

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Settings = TypeVar("Settings", bound=DataclassInstance)


def compute_settings_object(of: type[Settings], resolved: Resolved) -> Settings:
    """Build one settings object. Raises ``SettingsError`` if its values contradict each other."""
    fields: dict[str, Any] = {
        field.name: resolved.values[compute_setting_name(field.name)]
        for field in dataclasses.fields(of)
        if field.name not in GROUP_ONLY
    }
    try:
        return of(**fields)
    except ValueError as error:
        raise SettingsError([str(error)]) from error
