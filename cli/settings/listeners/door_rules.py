"""Rules of the gRPC and the HTTP listener; every mistake in their settings is one line."""

from __future__ import annotations

from collections.abc import Mapping

from cli.settings.listeners.listener_rules import check_endpoint
from cli.settings.listeners.listener_tls import PREFIX, compute_tls_settings
from cli.settings.setting import Value, render_value
from security.endpoints import Endpoint, SecurityProtocol
from security.loopback import is_loopback
from security.tls.tls_settings import PROTOCOLS, ClientAuth

GRPC = "listen.grpc"
HTTP = "listen.http"


def check_doors(values: Mapping[str, Value]) -> list[str]:
    """What is wrong with the two listeners."""
    mistakes = _check_limits(values)
    for setting in (GRPC, HTTP):
        endpoint = values[setting]
        if not isinstance(endpoint, Endpoint):
            mistakes.append(f"{setting} must not be empty: write HOST:PORT")
            continue
        mistakes += check_endpoint(setting, values, endpoint)
        if setting == GRPC:
            mistakes += _check_grpc(values, endpoint)
    return mistakes


def _check_limits(values: Mapping[str, Value]) -> list[str]:
    """Limits that would be left out in silence."""
    mistakes = []
    for door in ("grpc", "http"):
        for name in ("max.connections", "max.connection.creation.rate"):
            prefixed = f"{PREFIX}{door}.{name}"
            if prefixed in values:
                mistakes.append(
                    f"{prefixed} is for listeners of the Kafka wire: set {door}.connections.max"
                )
    return mistakes


def _check_grpc(values: Mapping[str, Value], endpoint: Endpoint) -> list[str]:
    shown = f"{GRPC} ({render_value(endpoint)})"
    mistakes = []
    if (
        endpoint.protocol is SecurityProtocol.SASL_PLAINTEXT
        and not is_loopback(endpoint.host)
        and not values["allow.unauthenticated"]
    ):
        mistakes.append(
            f"{shown}: passwords and tokens would cross the network in the clear; use SASL_SSL, or "
            "add --allow-unauthenticated"
        )
    if endpoint.protocol.uses_tls:
        mistakes += [f"{shown}: {line}" for line in _check_grpc_tls(values, endpoint)]
    return mistakes


def _check_grpc_tls(values: Mapping[str, Value], endpoint: Endpoint) -> list[str]:
    """What gRPC cannot do: it would be left out in silence."""
    tls = compute_tls_settings(values, endpoint)
    mistakes = []
    if tls.client_auth is ClientAuth.REQUESTED:
        mistakes.append(
            "gRPC either requires certificates or asks for none: set "
            "listener.name.grpc.ssl.client.auth to required or none"
        )
    if set(tls.enabled_protocols) != set(PROTOCOLS):
        mistakes.append(
            "gRPC always serves both versions of TLS: set "
            f"listener.name.grpc.ssl.enabled.protocols={','.join(PROTOCOLS)}"
        )
    if tls.cipher_suites:
        mistakes.append(
            "gRPC chooses the cipher suites: set listener.name.grpc.ssl.cipher.suites to nothing"
        )
    return mistakes
