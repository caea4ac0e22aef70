"""Addresses of live servers: ``muster://HOST:PORT``, with a client's file if one is needed."""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import parse_qsl, quote, urlsplit

from pipeline.source.errors import OptionError

SCHEME: Final = "muster://"
OFFSETS_PER_TRIGGER: Final = 1_000_000
"""What a stream reads of a server at a time unless it says otherwise."""

_CONFIG: Final = "config"


class ServerAddress(NamedTuple):
    """``target`` is HOST:PORT of gRPC; ``config`` a Kafka client's properties file, or empty."""

    target: str
    config: str = ""

    def write(self) -> str:
        """As the path of a log."""
        query = f"?{_CONFIG}={quote(self.config)}" if self.config else ""
        return f"{SCHEME}{self.target}{query}"


def is_server(path: str) -> bool:
    """Whether a path is the address of a server."""
    return path.startswith(SCHEME)


def parse_address(path: str) -> ServerAddress:
    """The server at a path. Raise ``OptionError`` unless it is the address of one."""
    wrong = OptionError(
        f"{path} is no server: write {SCHEME}HOST:PORT, or {SCHEME}HOST:PORT?{_CONFIG}=FILE with a "
        "client's properties"
    )
    try:
        parts = urlsplit(path)
        named, port = parts.hostname, parts.port
        query = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=True))
    except ValueError:
        raise wrong from None
    if not named or port is None or parts.username is not None or parts.path.strip("/"):
        raise wrong
    config = query.pop(_CONFIG, "")
    if query:
        raise wrong
    return ServerAddress(parts.netloc, config)
