"""Opens connections to brokers: TCP, TLS, ApiVersions, and the login in Muster's own name."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from typing import Any, Final

from gateway.codec.client_frames import API_VERSIONS, ClientRequest
from upstream.cluster.cluster import ClusterUnreachable
from upstream.cluster.cluster_settings import ClusterSettings
from upstream.cluster.connections.connection import Connection
from upstream.cluster.connections.logging_in import log_in
from upstream.cluster.connections.opening_faults import OpeningFault, Trouble

UNSUPPORTED_VERSION: Final = 35
_VERSION: Final = 3
"""The first with the features; brokers before 2.4 answer it in version 0 (KIP-511)."""
_STREAM_BYTES: Final = 256 * 1024


class Opener:
    """Opens connections by the settings; the TLS context is made once."""

    def __init__(self, settings: ClusterSettings) -> None:
        self.settings = settings
        self._context = settings.security.make_context()
        self._context_for_others = settings.security.make_context_for_others()

    async def open_streams(
        self, host: str, port: int, *, for_others: bool = False
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """TCP, and TLS if the brokers speak it. Raises ``OpeningFault``.

        ``for_others``: what is sent is not Muster's own.
        """
        context = self._context_for_others if for_others else self._context
        where = f"{host}:{port}"
        try:
            async with asyncio.timeout(self.settings.connect_timeout_ms / 1_000):
                return await asyncio.open_connection(host, port, ssl=context, limit=_STREAM_BYTES)
        except TimeoutError:
            raise OpeningFault(Trouble.NO_ANSWER, f"{where} does not answer") from None
        except ssl.SSLError as error:
            raise _describe_tls(where, error) from None
        except (OSError, ValueError) as error:
            # ValueError: a host name that cannot be encoded.
            is_in_tls = context is not None and isinstance(error, ConnectionResetError)
            trouble = Trouble.NO_TLS if is_in_tls else Trouble.NO_ANSWER
            raise OpeningFault(trouble, f"{where}: {_say(error)}") from None

    async def open(self, host: str, port: int) -> Connection:
        """A connection that is greeted and logged in. Raises ``OpeningFault``."""
        connection = Connection(*await self.open_streams(host, port), self.settings)
        try:
            await greet(connection, f"{host}:{port}", self.settings)
            await log_in(connection, f"{host}:{port}", self.settings)
        except BaseException:
            connection.close()
            raise
        return connection


async def greet(connection: Connection, where: str, settings: ClusterSettings) -> None:
    """Ask for the versions that the broker serves. Raises ``OpeningFault``."""
    fields = {"client_software_name": "muster", "client_software_version": "1"}
    request = ClientRequest(API_VERSIONS, fields)
    try:
        answer = await _ask_versions(connection, request, settings.connect_timeout_ms)
    except ClusterUnreachable as error:
        raise _describe_end(connection, where, error) from None
    if answer.error_code:
        raise OpeningFault(
            Trouble.NOT_KAFKA, f"{where} answers ApiVersions with error {answer.error_code}"
        )
    connection.versions = compute_versions(answer)
    connection.features = {
        row.name: row.max_version_level for row in getattr(answer, "finalized_features", ())
    }


async def _ask_versions(connection: Connection, request: ClientRequest, timeout_ms: int) -> Any:
    answer = await connection.ask_version(request, _VERSION, timeout_ms)
    if answer.error_code == UNSUPPORTED_VERSION:
        return await connection.ask_version(request, 0, timeout_ms)
    return answer


def compute_versions(answer: Any) -> Mapping[int, range]:
    """The versions by API key in an answer to ApiVersions."""
    return {
        row.api_key: range(row.min_version, row.max_version + 1)
        for row in answer.api_keys
        if 0 <= row.min_version <= row.max_version
    }


def _describe_end(connection: Connection, where: str, error: ClusterUnreachable) -> OpeningFault:
    match connection.trouble:
        case OpeningFault() as fault:
            return OpeningFault(fault.trouble, f"{where}: {fault}")
        case TimeoutError() | None:
            return OpeningFault(Trouble.NO_ANSWER, f"{where} accepts, and does not answer")
        case OSError():
            return OpeningFault(Trouble.CLOSED, f"{where}: {error}")
        case _:
            return OpeningFault(Trouble.NOT_KAFKA, f"{where}: {error}")


def _describe_tls(where: str, error: ssl.SSLError) -> OpeningFault:
    reason = getattr(error, "reason", None) or ""
    if isinstance(error, ssl.SSLCertVerificationError):
        return OpeningFault(Trouble.UNTRUSTED, f"{where}: {error.verify_message}")
    if "ALERT" in reason:
        return OpeningFault(Trouble.UNTRUSTED, f"{where}: {reason}")
    return OpeningFault(Trouble.NO_TLS, f"{where}: {reason or _say(error)}")


def _say(error: Exception) -> str:
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(text).splitlines()[0]
