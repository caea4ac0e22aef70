"""Resolves settings from their sources: flag, then environment, then file, then default."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from cli.settings.listeners.listener_rules import compute_listener_plan
from cli.settings.masking import hide, looks_secret
from cli.settings.setting import Address, Kind, SettingsError, Value, compute_variable, parse_value
from cli.settings.setting_rules import check_rules, compute_followers
from cli.settings.table import SETTINGS, compute_suggestion, find_setting, has_no_meaning_here
from security.client.config_providers import (
    ConfigProviders,
    ProviderError,
    is_exposed,
    is_provider_name,
)
from security.client.properties import PropertiesError, parse_properties
from security.endpoints import Endpoint

_PREFIX = "MUSTER_"
_NOT_SETTINGS = frozenset(
    compute_variable(name)
    for name in ("command.config", "config", "server", "timeout", "require.peers", "sasl.password")
)
"""Environment variables of Muster that are not server settings."""

# Kubernetes sets these in every pod for a service named muster.
_INJECTED = ("MUSTER_SERVICE_", "MUSTER_PORT_", "MUSTER_TEST_")


class Origin(NamedTuple):
    """Where a value comes from. ``source`` is default, file, environment or flag."""

    source: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.source} {self.detail}".strip()


class Assignment(NamedTuple):
    """A name and an unparsed value from one source."""

    name: str
    raw: object
    origin: Origin
    is_provided: bool = False
    """Whether a config provider has the value, which may then be a secret."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """The value of every setting and its origin; a listener's own setting is there if it is set.

    ``warnings`` are lines for users: settings that were accepted but have no effect. ``exposed``
    are lines about files with secrets that everybody may read.
    """

    values: Mapping[str, Value]
    origins: Mapping[str, Origin]
    warnings: tuple[str, ...] = ()
    exposed: tuple[str, ...] = ()

    def integer(self, name: str) -> int:
        """The value of an integer setting."""
        value = self.values[name]
        assert isinstance(value, int), name
        return value

    def endpoint(self, name: str) -> Endpoint:
        """The value of a setting that is a listener."""
        value = self.values[name]
        assert isinstance(value, Endpoint), name
        return value

    def address(self, name: str) -> Address:
        """The value of a setting that is an address."""
        value = self.values[name]
        assert isinstance(value, Address), name
        return value

    def text(self, name: str) -> str:
        """The value of a string setting."""
        value = self.values[name]
        assert isinstance(value, str), name
        return value


def resolve(
    flags: Sequence[Assignment] = (),
    environment: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> Resolved:
    """Resolve all settings from these sources. Raises ``SettingsError`` with every mistake."""
    mistakes: list[str] = []
    idle: list[str] = []
    provided: list[str] = []
    exposed: dict[Path, None] = {}
    values = {name: setting.default for name, setting in SETTINGS.items()}
    origins = dict.fromkeys(SETTINGS, Origin("default"))
    assignments = _all_assignments(flags, environment or {}, file, exposed)
    for name, raw, origin, is_provided in assignments:
        setting = find_setting(name)
        if setting is None:
            if has_no_meaning_here(name):
                idle.append(name)
            else:
                mistakes.append(_describe_unknown(name, origin))
            continue
        if isinstance(raw, ProviderError):
            mistakes.append(f"{name} ({origin}): {raw}")
            continue
        if is_provided and isinstance(raw, str):
            provided.append(raw)
        try:
            values[setting.name] = parse_value(setting, raw)
        except ValueError as error:
            reason = f"is not a valid {setting.kind.value}" if is_provided else error
            mistakes.append(f"{name} ({origin}): {reason}")
            continue
        origins[setting.name] = origin
        is_secret = setting.kind is Kind.PASSWORD and values[setting.name] is not None
        if is_secret and origin.source == "file" and not is_provided and file is not None:
            exposed |= {file: None} if is_exposed(file) else {}
    if mistakes:
        raise SettingsError(mistakes)
    chosen = {name for name, origin in origins.items() if origin.source != "default"}
    for name, value in compute_followers(values, chosen).items():
        values[name] = value
        origins[name] = Origin("default", "adjusted to the values that were set")
    broken = check_rules(values)
    if broken:
        raise SettingsError([hide(line, provided) for line in broken])
    warnings = (*_compute_warnings(idle), *compute_listener_plan(values).warnings)
    return Resolved(values, origins, warnings, _describe_exposed(exposed))


def parse_flags(arguments: Sequence[str]) -> list[Assignment]:
    """Parse settings on a command line: ``--NAME VALUE`` or ``--NAME=VALUE``.

    Dots in a name may be written as dashes, and a boolean flag needs no value.
    Raises ``SettingsError`` for an argument that is not a flag, or a flag without its value.
    """
    found: list[Assignment] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        flag, equals, text = word.partition("=")
        if not flag.startswith("--") or len(flag) == 2:
            # Not its value: it may be that of a password.
            raise SettingsError([f"unexpected argument: {flag}"])
        name = compute_name(flag.removeprefix("--"))
        _check_no_secret(flag, name)
        raw: object = text
        if not equals:
            setting = find_setting(name)
            if setting is not None and setting.kind is Kind.BOOLEAN:
                raw = True
            elif not rest and setting is None and not has_no_meaning_here(name):
                raise SettingsError([_describe_unknown(name, Origin("flag", flag))])
            elif not rest:
                raise SettingsError([f"{flag} needs a value"])
            else:
                raw = rest.pop(0)
        found.append(Assignment(name, raw, Origin("flag", flag)))
    return found


def _check_no_secret(flag: str, name: str) -> None:
    """Raise ``SettingsError`` for a secret on the command line, whatever its value is."""
    setting = find_setting(name)
    is_secret = looks_secret(name) if setting is None else setting.kind is Kind.PASSWORD
    if is_secret and (setting is not None or has_no_meaning_here(name)):
        variable = compute_variable(name)
        raise SettingsError(
            [
                f"{flag} is not taken on the command line, where `ps` shows it: use the file of "
                f"--config, or the environment variable {variable}"
            ]
        )


def compute_name(flag: str) -> str:
    """The setting that a flag names; dashes may stand for dots."""
    return flag if flag in SETTINGS else flag.replace("-", ".")


def _all_assignments(
    flags: Sequence[Assignment],
    environment: Mapping[str, str],
    file: Path | None,
    exposed: dict[Path, None],
) -> Iterator[Assignment]:
    if file is not None:
        yield from _read_provided(file, environment, exposed)
    yield from _read_environment(environment)
    yield from flags


def _read_provided(
    path: Path, environment: Mapping[str, str], exposed: dict[Path, None]
) -> Iterator[Assignment]:
    """The settings of a file, with the values of its config providers, or their errors."""
    found = list(read_file(path))
    try:
        providers = ConfigProviders({each.name: each.raw for each in found}, environment)
    except ProviderError as error:
        raise SettingsError([f"{path}: {error}"]) from error
    for each in found:
        if is_provider_name(each.name):
            continue
        count = len(providers.values)
        raw: object
        try:
            raw = providers.expand_all(each.raw)
        except ProviderError as error:
            raw = error
        yield each._replace(raw=raw, is_provided=len(providers.values) > count)
    exposed.update(dict.fromkeys(providers.exposed))


def _read_environment(environment: Mapping[str, str]) -> Iterator[Assignment]:
    known = {setting.variable: name for name, setting in SETTINGS.items()}
    for variable, text in sorted(environment.items()):
        if not variable.startswith(_PREFIX) or variable in _NOT_SETTINGS:
            continue
        if variable.startswith(_INJECTED) or variable == "MUSTER_PORT":
            continue
        name = variable.removeprefix(_PREFIX).lower().replace("_", ".")
        yield Assignment(known.get(variable, name), text, Origin("environment", variable))


def read_file(path: Path) -> Iterator[Assignment]:
    """Read the settings of a ``.properties`` or ``.toml`` file, in order."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise SettingsError([f"cannot read {path}: {error.strerror}"]) from error
    match path.suffix:
        case ".properties":
            yield from _read_properties(path, content)
        case ".toml":
            yield from _read_toml(path, content)
        case _:
            raise SettingsError([f"{path}: the file name must end in .properties or .toml"])


def _read_properties(path: Path, content: bytes) -> Iterator[Assignment]:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        # Java reads .properties files as Latin-1.
        text = content.decode("latin-1")
    try:
        for key, value, line in parse_properties(text):
            yield Assignment(key, value, Origin("file", f"{path}:{line}"))
    except PropertiesError as error:
        raise SettingsError([f"{path}: {error}"]) from error


def _read_toml(path: Path, content: bytes) -> Iterator[Assignment]:
    try:
        table = tomllib.loads(content.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError([f"{path}: {error}"]) from error
    for name, raw in _flatten(table, ""):
        yield Assignment(name, raw, Origin("file", str(path)))


def _flatten(table: Mapping[str, object], prefix: str) -> Iterator[tuple[str, object]]:
    """Yield names and values. TOML parses an unquoted dotted key as nested tables."""
    for key, raw in table.items():
        if isinstance(raw, dict):
            yield from _flatten(raw, f"{prefix}{key}.")
        else:
            yield prefix + key, raw


def _describe_unknown(name: str, origin: Origin) -> str:
    close = compute_suggestion(name)
    hint = f"; did you mean {close}?" if close else "; `muster config show` lists all settings"
    return f"unknown setting {name} ({origin}){hint}"


def _describe_exposed(exposed: Iterable[Path]) -> tuple[str, ...]:
    return tuple(
        f"{path} has secrets, and every user of this machine may read it: chmod o-r {path}"
        for path in exposed
    )


def _compute_warnings(idle: Sequence[str]) -> tuple[str, ...]:
    if not idle:
        return ()
    return (f"these Kafka settings have no effect: {', '.join(sorted(set(idle)))}",)
