"""Makes the listeners of the Kafka wire from the settings, and binds those of all doors."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace

from cli.errors import CommandError, ExitCode
from cli.serve.certificates import Certificates
from cli.serve.listen_addresses import check_free_address, compute_listen_error
from cli.settings import Address, Resolved
from cli.settings.listener_rules import compute_listener_plan
from cli.settings.listener_tls import compute_tls_settings
from gateway.wire_listener import WireListener
from security.endpoints import Endpoint
from security.tls.tls_settings import TlsFault

KAFKA = "kafka"
"""The first listener of the Kafka wire, in the endpoints file and where it is told."""


def compute_asked(endpoint: Endpoint) -> Address:
    """Where a listener was asked to listen."""
    return Address(endpoint.host, endpoint.port)


def make_wire_listeners(resolved: Resolved, certificates: Certificates) -> Sequence[WireListener]:
    """The listeners of the Kafka wire, in order, with their keys. Raises ``CommandError``."""
    endpoints = compute_listener_plan(resolved.values).endpoints
    return [_make_listener(resolved, endpoint, certificates) for endpoint in endpoints]


def check_addresses(resolved: Resolved, listeners: Sequence[WireListener]) -> None:
    """Raise ``CommandError`` if an address of any door is taken."""
    addresses = [(KAFKA, compute_asked(listener.endpoint)) for listener in listeners]
    addresses += [(name, resolved.address(f"listen.{name}")) for name in ("grpc", "http")]
    for name, asked in addresses:
        try:
            check_free_address(asked)
        except OSError as error:
            raise compute_listen_error(name, asked, error) from error


async def bind(name: str, asked: Address, listening: Awaitable[int]) -> int:
    """The bound port of a door. Raises ``CommandError``."""
    try:
        return await listening
    except OSError as error:
        raise compute_listen_error(name, asked, error) from error


def _make_listener(
    resolved: Resolved, endpoint: Endpoint, certificates: Certificates
) -> WireListener:
    listener = WireListener(endpoint)
    if endpoint.protocol.uses_sasl:
        listener = add_sasl(listener, resolved)
    if endpoint.protocol.uses_tls:
        settings = compute_tls_settings(resolved.values, endpoint)
        try:
            contexts = certificates.add(endpoint.name, settings)
        except TlsFault as fault:
            line = f"listen.kafka ({endpoint.name}): {fault}"
            raise CommandError(line, ExitCode.USAGE) from None
        listener = replace(listener, tls=contexts)
    return listener


def add_sasl(listener: WireListener, resolved: Resolved) -> WireListener:
    """The listener with what authenticates its clients by SASL. Raises ``CommandError``."""
    endpoint = listener.endpoint
    raise CommandError(
        f"listen.kafka ({endpoint.name}): {endpoint.protocol.value} needs a mechanism in "
        "sasl.enabled.mechanisms, and there is none",
        ExitCode.USAGE,
    )


def compute_bound(listeners: Sequence[WireListener], ports: Sequence[int]) -> Mapping[str, Address]:
    """The bound addresses: the first listener as ``kafka``, the others by their names."""
    names = [KAFKA, *(listener.endpoint.name for listener in listeners[1:])]
    return {
        name: Address(listener.endpoint.host, port)
        for name, listener, port in zip(names, listeners, ports, strict=True)
    }
