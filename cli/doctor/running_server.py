"""Finds the server that uses a data folder, and asks it over HTTP."""

from __future__ import annotations

import http.client
import json
import os
import ssl
from dataclasses import dataclass
from typing import Final

from cli.data_folder import DataFolder

_ANSWER_BYTES_MAX: Final = 64 << 20
"""The metrics of 10,000 groups have some 10 MB."""
_LOOPBACKS: Final = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1", "[::]": "::1"}


class ServerSilent(Exception):
    """The server did not answer; one line says why."""


@dataclass(frozen=True, slots=True)
class RunningServer:
    """As its ``endpoints.json`` has it: the process, its version, and where it listens."""

    pid: int
    version: str
    addresses: dict[str, str]


def find_running_server(folder: DataFolder) -> RunningServer | None:
    """The server of a data folder; ``None`` if there is none, or if only its file is left.

    Raises ``PermissionError`` if this user may not look.
    """
    try:
        found = json.loads(folder.endpoints.read_text(encoding="utf-8"))
        pid = int(found["pid"])
        addresses = {
            name: text
            for name, text in found.items()
            if isinstance(text, str) and name not in ("version", "cluster_id")
        }
        server = RunningServer(pid, str(found["version"]), addresses)
    except PermissionError:
        raise
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return server if _is_running(pid) else None


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def ask(address: str, path: str, timeout_s: float) -> tuple[int, str]:
    """The status and the text that ``GET path`` is answered with. Raises ``ServerSilent``.

    Whether the listener has TLS is found out by trying. Its certificate is not checked: nothing
    secret is sent, and the name in it need not be that of this machine.
    """
    host, _, port = address.rpartition(":")
    host = _LOOPBACKS.get(host, host.strip("[]"))
    try:
        return _get(http.client.HTTPConnection(host, int(port), timeout=timeout_s), path)
    except (http.client.HTTPException, ConnectionError):
        pass
    except OSError as error:
        raise ServerSilent(f"{address} did not answer: {error.strerror or error}") from error
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    secure = http.client.HTTPSConnection(host, int(port), timeout=timeout_s, context=context)
    try:
        return _get(secure, path)
    except ssl.SSLError as error:
        if "CERTIFICATE_REQUIRED" in str(error):
            raise ServerSilent(f"{address} asks clients for a certificate") from error
        raise ServerSilent(f"{address} did not answer over TLS: {error.reason}") from error
    except (http.client.HTTPException, OSError) as error:
        raise ServerSilent(f"{address} did not answer: {error}") from error


def _get(connection: http.client.HTTPConnection, path: str) -> tuple[int, str]:
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read(_ANSWER_BYTES_MAX).decode("utf-8", "replace")
    finally:
        connection.close()
