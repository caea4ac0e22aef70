"""The type of a setting: name, kind, bounds, default, and how its text is parsed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from importlib.metadata import entry_points
from typing import Final, NamedTuple, TypeAlias, assert_never

from model.secret import Secret
from security.endpoints import Endpoint, SecurityProtocol

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1


class SettingsError(Exception):
    """The settings are invalid; ``lines`` has one line for each mistake."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__("; ".join(lines))
        self.lines = tuple(lines)


class Address(NamedTuple):
    """A host and a port; port 0 lets the system choose."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


Value: TypeAlias = int | bool | str | tuple[str, ...] | Address | Endpoint | Secret | None


class Kind(Enum):
    """The type of a setting's value; texts are parsed as Kafka parses its own settings."""

    INT = "int"
    LONG = "long"
    BOOLEAN = "boolean"
    STRING = "string"
    LIST = "list"
    ADDRESS = "host:port"
    LISTENER = "[protocol://]host:port"
    PASSWORD = "password"


class Scope(Enum):
    """The sections of docs/settings.md."""

    SERVER = "The process"
    GROUP = "Groups and offsets"
    LOG = "The log"
    TOPICS = "Topics"
    KAFKA = "The Kafka listener"
    TLS = "TLS"
    GRPC = "gRPC"
    CONSOLE = "The console"
    SECURITY = "Access control"
    SASL = "SASL on the Kafka listener"
    UPSTREAM = "In front of a cluster"


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. ``minimum`` and ``maximum`` bound numbers, ``choices`` lists the valid texts.

    ``is_per_listener``: ``listener.name.NAME.`` before the name sets it for one listener alone.
    ``is_kafka``: Kafka has a setting with this name and meaning. ``aliases``: other spellings of
    choices. ``entry_points``: an entry-point group whose names are also valid choices.
    A default of ``None`` means that the setting is unset by default.
    """

    name: str
    kind: Kind
    default: Value
    scope: Scope
    doc: str
    minimum: int = 0
    maximum: int = INT_MAX
    choices: tuple[str, ...] = ()
    is_kafka: bool = False
    aliases: tuple[tuple[str, str], ...] = ()
    entry_points: str | None = None
    is_per_listener: bool = False

    @property
    def flag(self) -> str:
        """The command-line flag; dots may be written as dashes."""
        return f"--{self.name}"

    @property
    def variable(self) -> str:
        """The environment variable."""
        return compute_variable(self.name)


def compute_variable(name: str) -> str:
    """The environment variable of a setting: ``MUSTER_`` and the name in upper case."""
    return "MUSTER_" + name.upper().replace(".", "_")


def parse_value(setting: Setting, raw: object) -> Value:
    """Parse a text or a TOML value. Raises ``ValueError`` with the reason."""
    match setting.kind:
        case Kind.INT | Kind.LONG:
            return _parse_number(setting, raw)
        case Kind.BOOLEAN:
            return _parse_boolean(raw)
        case Kind.STRING:
            return _parse_string(setting, raw)
        case Kind.LIST:
            return _parse_list(setting, raw)
        case Kind.ADDRESS:
            return parse_address(raw)
        case Kind.LISTENER:
            return _parse_listener(setting, raw)
        case Kind.PASSWORD:
            return _parse_password(raw)
        case _:
            assert_never(setting.kind)


def render_value(value: Value) -> str:
    """Render a value as in a ``.properties`` file; ``None`` is the empty text."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case Address() | int() | str() | Secret():
            return str(value)
        case Endpoint(_, protocol, host, port):
            prefix = "" if protocol is SecurityProtocol.PLAINTEXT else f"{protocol.value}://"
            return f"{prefix}{Address(host, port)}"
        case _:
            return ",".join(value)


def _parse_number(setting: Setting, raw: object) -> int:
    number = _read_integer(raw)
    if number is None:
        raise ValueError(f"{_show(raw)} is not an integer")
    if not setting.minimum <= number <= setting.maximum:
        raise ValueError(
            f"{number} is out of range: must be between {setting.minimum} and {setting.maximum}"
        )
    return number


def _read_integer(raw: object) -> int | None:
    if isinstance(raw, int) and not isinstance(raw, bool):
        return raw
    if not isinstance(raw, str) or not raw.strip().isascii() or "_" in raw:
        return None
    try:
        return int(raw.strip())
    except ValueError:
        return None


def _parse_boolean(raw: object) -> bool:
    if isinstance(raw, bool):
        return raw
    text = raw.strip().lower() if isinstance(raw, str) else ""
    if text not in ("true", "false"):
        raise ValueError(f"{_show(raw)} is neither true nor false")
    return text == "true"


def _parse_string(setting: Setting, raw: object) -> str | None:
    if not isinstance(raw, str):
        raise ValueError(f"{_show(raw)} is not a string")
    text = raw.strip()
    if not text and setting.default is None:
        return None
    if not text:
        raise ValueError("must not be empty")
    return _check_choice(setting, text) if setting.choices else text


def _parse_list(setting: Setting, raw: object) -> tuple[str, ...] | None:
    if isinstance(raw, str):
        items = [item.strip() for item in raw.split(",")] if raw.strip() else []
    elif isinstance(raw, list) and all(isinstance(item, str) for item in raw):
        items = [item.strip() for item in raw]
    else:
        raise ValueError(f"{_show(raw)} is not a list of strings")
    if not items and setting.default in (None, ()):
        return None if setting.default is None else ()
    if not items or not all(items):
        raise ValueError("must not be empty or have empty entries")
    checked = tuple(_check_choice(setting, item) if setting.choices else item for item in items)
    if len(set(checked)) < len(checked):
        raise ValueError("must not contain duplicates")
    return checked


def _check_choice(setting: Setting, text: str) -> str:
    choice = dict(setting.aliases).get(text, text)
    if choice in setting.choices:
        return choice
    choices = setting.choices
    if setting.entry_points is not None:
        choices += tuple(sorted({e.name for e in entry_points(group=setting.entry_points)}))
    if choice not in choices:
        raise ValueError(f"{text} is not one of {', '.join(choices)}")
    return choice


def parse_address(raw: object) -> Address | None:
    """Parse ``HOST:PORT``; an empty text is ``None``. Raises ``ValueError`` with the reason."""
    if not isinstance(raw, str):
        raise ValueError(f"{_show(raw)} is not HOST:PORT")
    if not raw.strip():
        return None
    host, colon, port = raw.strip().rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"{raw} is not HOST:PORT: write an IPv6 address in brackets")
    number = int(port) if port.isascii() and port.isdigit() else -1
    if not colon or not host or not 0 <= number <= 65535:
        raise ValueError(f"{raw} is not HOST:PORT, with a port from 0 to 65535")
    return Address(host, number)


def _parse_listener(setting: Setting, raw: object) -> Endpoint | None:
    """``HOST:PORT`` or ``PROTOCOL://HOST:PORT``, with a protocol of the setting's choices."""
    if not isinstance(raw, str):
        raise ValueError(f"{_show(raw)} is not HOST:PORT or PROTOCOL://HOST:PORT")
    protocol, separator, rest = raw.strip().rpartition("://")
    address = parse_address(rest)
    if address is None:
        return None
    if separator and protocol.upper() not in setting.choices:
        raise ValueError(f"{protocol} is not one of {', '.join(setting.choices)}")
    found = SecurityProtocol(protocol.upper()) if separator else SecurityProtocol.PLAINTEXT
    return Endpoint(compute_door_name(setting.name), found, address.host, address.port)


def compute_door_name(setting: str) -> str:
    """The name of the listener that a setting such as ``listen.grpc`` is about: ``GRPC``."""
    return setting.rpartition(".")[2].upper()


def _parse_password(raw: object) -> Secret | None:
    if not isinstance(raw, str):
        raise ValueError("its value is not a string")
    text = raw.strip()  # As Kafka does.
    return Secret(text) if text else None


def _show(raw: object) -> str:
    return repr(raw) if isinstance(raw, str) else str(raw)
