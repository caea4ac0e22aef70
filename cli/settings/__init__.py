"""Settings: one table of names, kinds, bounds and defaults, and the sources of values.

A flag overrides the environment, which overrides the file. Names are Kafka's where Kafka has one.
"""

from cli.settings.setting import Address, Kind, Scope, Setting, SettingsError, Value
from cli.settings.setting_sources import Origin, Resolved, resolve
from cli.settings.table import SETTINGS

__all__ = [
    "SETTINGS",
    "Address",
    "Kind",
    "Origin",
    "Resolved",
    "Scope",
    "Setting",
    "SettingsError",
    "Value",
    "resolve",
]
