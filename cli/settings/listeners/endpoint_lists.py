"""Parses lists of listeners and their addresses, in Kafka's form and in ours.

``HOST:PORT``, ``PROTOCOL://HOST:PORT``, ``NAME://HOST:PORT`` with the protocol in
``listener.security.protocol.map``, or ``NAME:PROTOCOL://HOST:PORT``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from cli.settings.setting import parse_address
from security.endpoints import SecurityProtocol

ENTRIES_MAX: Final = 64
PROTOCOL_NAMES: Final = {protocol.value: protocol for protocol in SecurityProtocol}
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_MAP: Final = "listener.security.protocol.map"


class Entry(NamedTuple):
    """One entry of a list; ``name`` in upper case, or ``None`` for a plain address."""

    name: str | None
    protocol: SecurityProtocol | None
    host: str
    port: int
    text: str


def parse_entries(setting: str, texts: Iterable[str]) -> tuple[list[Entry], list[str]]:
    """The entries, and one line for each mistake."""
    entries, mistakes = [], []
    for number, text in enumerate(texts):
        if number >= ENTRIES_MAX:
            mistakes.append(f"{setting} has more than {ENTRIES_MAX} entries")
            break
        try:
            entries.append(_parse_entry(text))
        except ValueError as error:
            mistakes.append(f"{setting} ({text}): {error}")
    return entries, mistakes


def parse_protocol_map(
    texts: Iterable[str],
) -> tuple[Mapping[str, SecurityProtocol], list[str]]:
    """The protocol of each name in ``listener.security.protocol.map``, and the mistakes."""
    found: dict[str, SecurityProtocol] = {}
    mistakes = []
    for text in texts:
        name, colon, protocol = (part.strip() for part in text.partition(":"))
        if not colon or not _NAME.fullmatch(name):
            mistakes.append(f"{_MAP} ({text}): write NAME:PROTOCOL")
        elif protocol.upper() not in PROTOCOL_NAMES:
            mistakes.append(f"{_MAP} ({text}): {_describe_unknown(protocol)}")
        elif found.setdefault(name.upper(), PROTOCOL_NAMES[protocol.upper()]).value != (
            protocol.upper()
        ):
            mistakes.append(f"{_MAP}: {name.upper()} has two protocols")
    return found, mistakes


def _parse_entry(text: str) -> Entry:
    head, separator, rest = text.partition("://")
    if not separator:
        address = parse_address(text)
        if address is None:
            raise ValueError("is not HOST:PORT")
        return Entry(None, None, address.host, address.port, text)
    name, colon, protocol = head.partition(":")
    if not _NAME.fullmatch(name):
        raise ValueError("the name of a listener has letters, digits, '_', '-' and '.' alone")
    if colon and protocol.upper() not in PROTOCOL_NAMES:
        raise ValueError(_describe_unknown(protocol))
    # Without a host, all of the machine's addresses, as in Kafka.
    address = parse_address(f"0.0.0.0{rest}" if rest.startswith(":") else rest)
    if address is None:
        raise ValueError("is not HOST:PORT, with a port from 0 to 65535")
    host = "" if rest.startswith(":") else address.host
    return Entry(name.upper(), PROTOCOL_NAMES.get(protocol.upper()), host, address.port, text)


def _describe_unknown(protocol: str) -> str:
    return f"{protocol or 'nothing'} is not one of {', '.join(PROTOCOL_NAMES)}"
