"""Kafka's config providers: values that stand in another file, or in the environment.

    config.providers=file,env,directory
    ssl.key.password=${file:/etc/muster/secrets.properties:key.password}
    sasl.jaas.config=${env:SASL_JAAS_CONFIG}
    ssl.keystore.key=${directory:/run/secrets:key.pem}

No error says a value. Where Kafka leaves a reference as it stands if it cannot be resolved, so that
it becomes the password, it is an error here.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Final, NamedTuple

from security.client.properties import PropertiesError, parse_properties

PREFIX: Final = "config.providers"
FILE_BYTES_MAX: Final = 1024 * 1024
"""Size of a file that a provider reads."""

_CLASSES: Final = "org.apache.kafka.common.config.provider."
_REFERENCE: Final = re.compile(r"\$\{([\w.-]{1,100}):([^{}]*)\}")


class ProviderError(ValueError):
    """A reference that cannot be resolved; the message names the file and the key."""


class Kind(Enum):
    """Kafka's providers, by the names that need no class here."""

    FILE = "file"
    ENV = "env"
    DIRECTORY = "directory"


_KIND_OF_CLASS: Final = {
    "FileConfigProvider": Kind.FILE,
    "EnvVarConfigProvider": Kind.ENV,
    "DirectoryConfigProvider": Kind.DIRECTORY,
}


class Provider(NamedTuple):
    """A provider; with ``allowed`` only these variables, or files below these folders."""

    kind: Kind
    allowed_paths: tuple[Path, ...] = ()
    allowed_names: re.Pattern[str] | None = None


def is_provider_name(name: str) -> bool:
    """Whether the name configures providers, and is no setting itself."""
    return name == PREFIX or name.startswith(PREFIX + ".")


class ConfigProviders:
    """The providers of one file. ``exposed`` are files that others on this machine can read."""

    def __init__(self, properties: Mapping[str, object], environment: Mapping[str, str]) -> None:
        """Raises ``ProviderError``."""
        self._environment = environment
        self._providers = _make_providers(properties)
        self._files: dict[Path, dict[str, str]] = {}
        self.exposed: list[Path] = []
        self.values: list[str] = []
        """The values that were found, for whoever has to hide them."""

    def expand(self, text: str) -> str:
        """The text with the values of its references. Raises ``ProviderError``."""
        return _REFERENCE.sub(self._find, text)

    def expand_all(self, raw: object) -> object:
        """A text, or the texts of a list; anything else as it is. Raises ``ProviderError``."""
        if isinstance(raw, str):
            return self.expand(raw)
        if isinstance(raw, list):
            return [self.expand_all(each) for each in raw]
        return raw

    def _find(self, reference: re.Match[str]) -> str:
        text, name, rest = reference[0], reference[1], reference[2]
        provider = self._providers.get(name)
        if provider is None:
            if name in {kind.value for kind in Kind}:
                raise ProviderError(f"{text} needs {PREFIX}={name}")
            return text  # Some other text: Kafka leaves it too.
        place, colon, key = rest.partition(":")
        match provider.kind:
            case Kind.ENV:
                value = self._read_variable(provider, rest)
            case Kind.FILE:
                if not colon:
                    raise ProviderError(f"{text} is not ${{{name}:PATH:KEY}}")
                value = self._read_key(provider, Path(place), key)
            case Kind.DIRECTORY:
                if not colon or Path(key).name != key:
                    raise ProviderError(f"{text} is not ${{{name}:FOLDER:FILE}}")
                value = self._read(provider, Path(place) / key).removesuffix("\n")
        self.values.append(value)
        return value

    def _read_variable(self, provider: Provider, name: str) -> str:
        pattern = provider.allowed_names
        if pattern is not None and pattern.fullmatch(name) is None:
            raise ProviderError(f"the variable {name} is not allowed by allowlist.pattern")
        if name not in self._environment:
            raise ProviderError(f"the variable {name} is not set")
        return self._environment[name]

    def _read_key(self, provider: Provider, path: Path, key: str) -> str:
        if path not in self._files:
            try:
                found = parse_properties(self._read(provider, path))
            except PropertiesError as error:
                raise ProviderError(f"{path}: {error}") from error
            self._files[path] = {each.key: each.value for each in found}
        if key not in self._files[path]:
            raise ProviderError(f"{path} has no key {key}")
        return self._files[path][key]

    def _read(self, provider: Provider, path: Path) -> str:
        allowed = provider.allowed_paths
        if allowed and not any(path.resolve().is_relative_to(each) for each in allowed):
            raise ProviderError(f"{path} is not within allowed.paths")
        try:
            text = read_text(path)
        except OSError as error:
            raise ProviderError(f"cannot read {path}: {error.strerror}") from error
        if is_exposed(path) and path not in self.exposed:
            self.exposed.append(path)
        return text


def read_text(path: Path) -> str:
    """The text of a file of at most ``FILE_BYTES_MAX``. Raises ``ProviderError``, ``OSError``."""
    with path.open("rb") as file:
        content = file.read(FILE_BYTES_MAX + 1)
    if len(content) > FILE_BYTES_MAX:
        raise ProviderError(f"{path} has more than {FILE_BYTES_MAX} bytes")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        # The error's text would have a byte of the file.
        raise ProviderError(f"{path} is not text in UTF-8") from None


def is_exposed(path: Path) -> bool:
    """Whether every user of this machine may read the file."""
    try:
        return bool(path.stat().st_mode & stat.S_IROTH)
    except OSError:
        return False


def _make_providers(properties: Mapping[str, object]) -> dict[str, Provider]:
    listed = properties.get(PREFIX, "")
    texts: Sequence[object] = listed if isinstance(listed, list) else str(listed).split(",")
    names = [name for each in texts if (name := str(each).strip())]
    for key in properties:
        if is_provider_name(key) and key != PREFIX and key.split(".")[2] not in names:
            raise ProviderError(f"{key}: {PREFIX} does not list {key.split('.')[2]}")
    return {name: _make_provider(name, properties) for name in names}


def _make_provider(name: str, properties: Mapping[str, object]) -> Provider:
    prefix = f"{PREFIX}.{name}."
    given = {
        key.removeprefix(prefix): str(raw)
        for key, raw in properties.items()
        if key.startswith(prefix)
    }
    try:
        class_name = given.pop("class", "").removeprefix(_CLASSES)
        kind = _KIND_OF_CLASS[class_name] if class_name else Kind(name)
    except (KeyError, ValueError) as error:
        classes = ", ".join(_KIND_OF_CLASS)
        raise ProviderError(f"{prefix}class must be one of {classes}") from error
    paths = given.pop("param.allowed.paths", "")
    pattern = given.pop("param.allowlist.pattern", "")
    if given:
        raise ProviderError(f"unknown setting {prefix}{min(given)}")
    try:
        names = re.compile(pattern) if pattern else None
    except re.error as error:
        raise ProviderError(f"{prefix}param.allowlist.pattern is no regular expression") from error
    folders = tuple(Path(each.strip()).resolve() for each in paths.split(",") if each.strip())
    return Provider(kind, folders, names)


def read_client_properties_file(path: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """The properties of a client's file, with the values of its providers.

    Raises ``ProviderError`` and ``OSError``.
    """
    try:
        found = {each.key: each.value for each in parse_properties(read_text(path))}
    except PropertiesError as error:
        raise ProviderError(str(error)) from error
    providers = ConfigProviders(found, environment)
    return {
        key: providers.expand(value) for key, value in found.items() if not is_provider_name(key)
    }
