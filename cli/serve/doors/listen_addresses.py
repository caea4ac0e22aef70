"""Checks whether listen addresses are free, and explains failures."""

from __future__ import annotations

import socket

from cli.errors import CommandError, ExitCode
from cli.settings import Address


def check_free_address(address: Address) -> None:
    """Raise ``OSError`` if a listener could not bind to the address now."""
    found = socket.getaddrinfo(
        address.host or None, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    for family, kind, protocol, _, place in found:
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            probe.bind(place)


def compute_listen_error(name: str, address: Address, error: OSError) -> CommandError:
    """Why a listener could not be opened, and what to do."""
    reason = error.strerror or str(error)
    in_use = "in use" in str(error).lower()
    code = ExitCode.PRECONDITION if in_use else ExitCode.FAILED
    hint = f"stop what uses it, or set another --listen.{name}" if in_use else reason
    return CommandError(
        f"cannot listen on {address} for listen.{name}"
        + (f": the port is in use; {hint}" if in_use else f": {hint}"),
        code,
    )
