"""A server of the Kafka protocol that a test can stall, and that asks for SASL if told to.

It knows one topic and answers what load tests of groups without members ask. It runs on a thread
of its own, so that a stall is not one of the test.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import struct
import threading
import time
from collections.abc import Mapping
from typing import Any, Final, Self

from gateway.codec.kio_schema import request_type, response_type
from gateway.headers import FIXED_BYTES, skip_header
from tests.support.wire.codec import decode, encode
from tests.support.wire.frames import make_entity

COMMIT: Final = 8
PARTITIONS: Final = 10
SALT: Final = b"salt of a test"
ITERATIONS: Final = 4096
_SUPPORTED: Final = (3, 8, 10, 17, 18, 19, 36, 42, 68)
_TOPIC_ID: Final = bytes(range(16))
_AUTHENTICATION_FAILED: Final = 58
_MECHANISMS: Final = {"PLAIN": "", "SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}


class FakeKafka:
    """Listens while a ``with`` block runs.

    Commit number ``stalls_at`` (from 1) is answered after ``stall_s``, and nothing else meanwhile;
    at commit ``closes_at`` it closes all connections and its listener. Commits get
    ``commit_error``, and from number ``silent_from`` on no answer. With ``passwords``, by user,
    connections must log in.
    """

    def __init__(
        self,
        *,
        stalls_at: int = 0,
        stall_s: float = 0.0,
        closes_at: int = 0,
        silent_from: int = 0,
        commit_error: int = 0,
        passwords: Mapping[str, str] | None = None,
    ) -> None:
        self.commits = 0
        self.logins: list[str] = []
        self._stalls_at, self._stall_s, self._closes_at = stalls_at, stall_s, closes_at
        self._commit_error = commit_error
        self._silent_from = silent_from
        self._is_closed = asyncio.Event()
        self._passwords = passwords
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._server: asyncio.Server | None = None
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.address = ""

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(30)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()
        self.address = f"{host}:{port}"

    async def _close(self) -> None:
        assert self._server is not None
        self._server.close()
        self._is_closed.set()
        for _ in range(3):
            # Also connections that were accepted while it stalled.
            for writer in self._writers:
                writer.transport.abort()
            await asyncio.sleep(0.01)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        login = _Login(self._passwords)
        try:
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                request = await reader.readexactly(size)
                key, version, correlation_id = struct.unpack_from(">hhi", request)
                target = request_type(key, version)
                _, start = skip_header(
                    request, FIXED_BYTES, size, target.__header_schema__.__flexible__
                )
                asked = decode(target, request, start)
                if key in (17, 36):
                    values = login.answer(key, asked)
                elif not login.is_done:
                    break
                else:
                    values = await self._answer(key, asked)
                if values is None:
                    break
                writer.write(_make_frame(key, version, correlation_id, values))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._writers.discard(writer)
            if login.user:
                self.logins.append(login.user)
            writer.close()

    async def _answer(self, key: int, asked: Any) -> dict[str, Any] | None:
        if key == COMMIT:
            self.commits += 1
            if self.commits == self._stalls_at:
                time.sleep(self._stall_s)  # noqa: ASYNC251
            if self.commits == self._closes_at:
                await self._close()
                return None
            if 0 < self._silent_from <= self.commits:
                await self._is_closed.wait()
                return None
        return self._compute_values(key, asked)

    def _compute_values(self, key: int, asked: Any) -> dict[str, Any]:
        host, _, port = self.address.rpartition(":")
        match key:
            case 18:
                return {
                    "api_keys": [
                        {"api_key": each, "min_version": 0, "max_version": 12}
                        for each in _SUPPORTED
                    ]
                }
            case 3:
                rows = [
                    {"partition_index": number, "leader_id": 1, "replica_nodes": (1,)}
                    for number in range(PARTITIONS)
                ]
                return {
                    "brokers": [{"node_id": 1, "host": host, "port": int(port)}],
                    "topics": [
                        {"name": asked.topics[0].name, "topic_id": _TOPIC_ID, "partitions": rows}
                    ],
                }
            case 10:
                return {
                    "coordinators": [
                        {"key": each, "node_id": 1, "host": host, "port": int(port)}
                        for each in asked.coordinator_keys
                    ]
                }
            case 8:
                row = {"partition_index": 0, "error_code": self._commit_error}
                return {"topics": [{"name": asked.topics[0].name, "partitions": [row]}]}
            case _:
                return {}


class _Login:
    """The server's side of SASL on one connection."""

    def __init__(self, passwords: Mapping[str, str] | None) -> None:
        self._passwords = passwords or {}
        self.is_done = passwords is None
        self.user = ""
        self._mechanism = ""
        self._client_first = self._server_first = ""

    def answer(self, key: int, asked: Any) -> dict[str, Any]:
        """The response to SaslHandshake (17) or SaslAuthenticate (36)."""
        if key == 17:
            self._mechanism = asked.mechanism
            return {"mechanisms": tuple(_MECHANISMS)}
        answer = self._authenticate(asked.auth_bytes.decode())
        if answer is None:
            return {"error_code": _AUTHENTICATION_FAILED, "error_message": "wrong password"}
        return {"auth_bytes": answer.encode()}

    def _authenticate(self, token: str) -> str | None:
        if self._mechanism == "PLAIN":
            _, user, password = token.split("\0")
            self.is_done = self._passwords.get(user) == password
            self.user = user if self.is_done else ""
            return "" if self.is_done else None
        fields = dict(part.split("=", 1) for part in token.removeprefix("n,,").split(","))
        if "n" in fields:
            self.user, self._client_first = fields["n"], token.removeprefix("n,,")
            salt = base64.b64encode(SALT).decode()
            self._server_first = f"r={fields['r']}server,s={salt},i={ITERATIONS}"
            return self._server_first
        final, proof = token.rsplit(",p=", 1)
        name = _MECHANISMS[self._mechanism]
        password = self._passwords.get(self.user, "").encode()
        salted = hashlib.pbkdf2_hmac(name, password, SALT, ITERATIONS)
        message = f"{self._client_first},{self._server_first},{final}".encode()
        client_key = hmac.digest(salted, b"Client Key", name)
        signature = hmac.digest(hashlib.new(name, client_key).digest(), message, name)
        expected = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self.is_done = base64.b64decode(proof) == expected
        if not self.is_done:
            self.user = ""
            return None
        server = hmac.digest(hmac.digest(salted, b"Server Key", name), message, name)
        return f"v={base64.b64encode(server).decode()}"


def _make_frame(key: int, version: int, correlation_id: int, values: dict[str, Any]) -> bytes:
    target = response_type(key, version)
    head = struct.pack(">i", correlation_id)
    if target.__header_schema__.__flexible__:
        head += b"\0"
    body = head + encode(target, make_entity(target, values))
    return struct.pack(">i", len(body)) + body
