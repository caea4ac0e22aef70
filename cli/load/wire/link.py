"""One connection to a Kafka listener, with TLS and SASL, for one request at a time."""

from __future__ import annotations

import asyncio
from typing import Any, Final, cast

from cli.load.wire.messages import (
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    SIZE_BYTES,
    MalformedAnswer,
    decode_answer,
    encode_frame,
    make_request,
    name_error,
)
from cli.load.wire.sasl import SaslError, ScramClient, encode_plain
from cli.tool_security import ToolSecurity

_ANSWER_BYTES_MAX: Final = 100 << 20


class RefusedError(Exception):
    """The server answers an error, or refuses the login; the message is for users."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


class Link(asyncio.Protocol):
    """Sends a request and waits for its response."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport
        self._kept = b""
        self._correlation_id = 0
        self._answer: asyncio.Future[bytes] | None = None
        self._is_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is there."""
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Keep bytes until a response is complete."""
        self._kept += data
        if len(self._kept) < SIZE_BYTES:
            return
        stop = SIZE_BYTES + int.from_bytes(self._kept[:SIZE_BYTES], "big")
        if stop > _ANSWER_BYTES_MAX:
            self._fail(MalformedAnswer("not a server of the Kafka protocol"))
            self.transport.abort()
        elif len(self._kept) >= stop:
            answer, self._kept = self._kept[:stop], self._kept[stop:]
            if self._answer is not None and not self._answer.done():
                self._answer.set_result(answer)

    def connection_lost(self, error: Exception | None) -> None:
        """End the wait for a response."""
        self._is_lost = True
        self._fail(ConnectionResetError("the server closed the connection"))

    async def ask(self, api: tuple[int, int], timeout_s: float, **fields: Any) -> Any:
        """Send a request and return its response.

        Raises ``TimeoutError``, ``OSError`` if the connection breaks, ``MalformedAnswer``.
        """
        if self._is_lost:
            raise ConnectionResetError("the server closed the connection")
        self._correlation_id += 1
        self._answer = asyncio.get_running_loop().create_future()
        self.transport.write(encode_frame(api, self._correlation_id, make_request(api, **fields)))
        async with asyncio.timeout(timeout_s):
            answer = await self._answer
        return decode_answer(api, self._correlation_id, answer)

    def close(self) -> None:
        """Close the connection."""
        self.transport.close()

    def _fail(self, error: Exception) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)


class Dialer:
    """Opens connections with the same security."""

    def __init__(self, security: ToolSecurity, timeout_s: float) -> None:
        self._security = security
        self._context = security.make_context()
        self.timeout_s = timeout_s

    async def open(self, address: str) -> Link:
        """Connect to HOST:PORT and log in.

        Raises ``OSError`` (also of TLS), ``TimeoutError``, ``RefusedError``, ``MalformedAnswer``.
        """
        host, _, port = address.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(self.timeout_s):
            _, link = await loop.create_connection(
                Link,
                host,
                int(port),
                ssl=self._context,
                server_hostname=host if self._context is not None else None,
            )
        try:
            if self._security.mechanism:
                await self._log_in(link)
        except BaseException:
            link.transport.abort()
            raise
        return link

    async def _log_in(self, link: Link) -> None:
        security = self._security
        answer = await link.ask(SASL_HANDSHAKE, self.timeout_s, mechanism=security.mechanism)
        if answer.error_code:
            offered = ", ".join(answer.mechanisms) or "none"
            raise RefusedError(
                name_error(answer.error_code),
                f"the server does not accept {security.mechanism}; it offers {offered}",
            )
        if security.mechanism == "PLAIN":
            await self._authenticate(link, encode_plain(security.username, security.password))
            return
        try:
            scram = ScramClient(security.mechanism, security.username, security.password)
            server_first = await self._authenticate(link, scram.encode_first())
            server_final = await self._authenticate(link, scram.encode_final(server_first))
            scram.check_server(server_final)
        except SaslError as error:
            raise RefusedError("SASL_AUTHENTICATION_FAILED", str(error)) from error

    async def _authenticate(self, link: Link, message: bytes) -> bytes:
        answer = await link.ask(SASL_AUTHENTICATE, self.timeout_s, auth_bytes=message)
        if answer.error_code:
            raise RefusedError(
                name_error(answer.error_code),
                f"the server refuses user {self._security.username}: "
                f"{answer.error_message or name_error(answer.error_code)}",
            )
        found: bytes = answer.auth_bytes
        return found


def name_failure(error: BaseException) -> str:
    """What a failed connection counts as among the errors."""
    match error:
        case RefusedError():
            return error.name
        case TimeoutError():
            return "TIMED_OUT"
        case ConnectionRefusedError():
            return "CONNECTION_REFUSED"
        case MalformedAnswer():
            return "MALFORMED_ANSWER"
        case _:
            return "CONNECTION_LOST"
