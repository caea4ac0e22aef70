"""Makes the listeners of the Kafka wire from the settings, and binds those of all doors."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace

from cli.errors import CommandError, ExitCode
from cli.serve.doors.certificates import Certificates
from cli.serve.doors.listen_addresses import check_free_address, compute_listen_error
from cli.serve.doors.sasl import SaslSetup
from cli.settings import Address, Resolved
from cli.settings.listeners.listener_rules import compute_listener_plan
from cli.settings.listeners.listener_tls import PREFIX, compute_prefix_name, compute_tls_settings
from gateway.wire_listener import WireListener
from gateway.wire_server import KafkaServer
from security.endpoints import Endpoint
from security.tls.server_contexts import TlsContexts
from security.tls.tls_settings import TlsFault

KAFKA = "kafka"
"""The first listener of the Kafka wire, in the endpoints file and where it is told."""


def compute_asked(endpoint: Endpoint) -> Address:
    """Where a listener was asked to listen."""
    return Address(endpoint.host, endpoint.port)


def make_wire_listeners(
    resolved: Resolved, certificates: Certificates, sasl: SaslSetup
) -> Sequence[WireListener]:
    """The listeners of the Kafka wire, in order, with their keys and with SASL.

    Raises ``CommandError`` or ``SettingsError``.
    """
    endpoints = compute_listener_plan(resolved.values).endpoints
    return [_make_listener(resolved, endpoint, certificates, sasl) for endpoint in endpoints]


def check_addresses(resolved: Resolved, listeners: Sequence[WireListener]) -> None:
    """Raise ``CommandError`` if an address of any door is taken."""
    addresses = [(KAFKA, compute_asked(listener.endpoint)) for listener in listeners]
    addresses += [
        (name, compute_asked(resolved.endpoint(f"listen.{name}"))) for name in ("grpc", "http")
    ]
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
    resolved: Resolved, endpoint: Endpoint, certificates: Certificates, sasl: SaslSetup
) -> WireListener:
    listener = WireListener(
        endpoint,
        max_connections=_find_limit(resolved, endpoint, "max.connections"),
        max_connection_creation_rate=_find_limit(
            resolved, endpoint, "max.connection.creation.rate"
        ),
    )
    if endpoint.protocol.uses_sasl:
        listener = replace(listener, sasl=sasl.make_sasl(endpoint))
    if endpoint.protocol.uses_tls:
        contexts = add_certificates(resolved, endpoint, "listen.kafka", certificates)
        listener = replace(listener, tls=contexts)
    return listener


def _find_limit(resolved: Resolved, endpoint: Endpoint, name: str) -> int | None:
    """The limit of this listener alone; that of all holds beside it."""
    own = resolved.values.get(f"{PREFIX}{compute_prefix_name(endpoint.name)}.{name}")
    assert own is None or isinstance(own, int), name
    return own


def add_certificates(
    resolved: Resolved, endpoint: Endpoint, setting: str, certificates: Certificates
) -> TlsContexts:
    """The keys of a listener with TLS. Raises ``CommandError``."""
    try:
        return certificates.add(endpoint.name, compute_tls_settings(resolved.values, endpoint))
    except TlsFault as fault:
        line = f"{setting} ({endpoint.name}): {fault}"
        raise CommandError(line, ExitCode.USAGE) from None


async def bind_all(server: KafkaServer, listeners: Sequence[WireListener]) -> Mapping[str, Address]:
    """The bound addresses: the first listener as ``kafka``, the others by their names.

    Raises ``CommandError``.
    """
    names = [KAFKA, *(listener.endpoint.name for listener in listeners[1:])]
    bound: dict[str, Address] = {}
    for name, listener in zip(names, listeners, strict=True):
        asked = compute_asked(listener.endpoint)
        bound[name] = Address(asked.host, await bind(KAFKA, asked, server.listen(listener)))
    return bound
