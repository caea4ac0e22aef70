"""A channel for generated stubs, whose calls carry credentials."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import grpc
import grpc.aio

from muster.connection.authorization import Authorization, Metadata, TokenUnavailable

CREDENTIALS_EXPIRED: Final = "CREDENTIALS_EXPIRED"
"""The reason of a server that ends a session whose token has ended."""
_REASON_KEY: Final = "muster-reason"


class AuthorizedChannel:
    """Calls wait for a token if there is none. One that is refused is replaced once a call.

    gRPC's own credentials of calls would not do: they need TLS, also on loopback.
    """

    def __init__(self, channel: grpc.aio.Channel, authorization: Authorization) -> None:
        self._channel = channel
        self._authorization = authorization

    def unary_unary(self, *method: Any, **codecs: Any) -> Callable[..., Awaitable[Any]]:
        """A unary call."""
        start = self._channel.unary_unary(*method, **codecs)

        async def call(request: Any, **options: Any) -> Any:
            metadata = await self._find()
            try:
                answer = await start(request, metadata=metadata, **options)
                self._authorization.note_accepted()
                return answer
            except grpc.aio.AioRpcError as error:
                if not self._may_retry(error, metadata):
                    raise
            return await start(request, metadata=await self._find(), **options)

        return call

    def unary_stream(self, *method: Any, **codecs: Any) -> Callable[..., Any]:
        """A stream of answers, with the token that is there."""
        return self._start_with_present(self._channel.unary_stream(*method, **codecs))

    def stream_stream(self, *method: Any, **codecs: Any) -> Callable[..., Any]:
        """A session, with the token that is there."""
        return self._start_with_present(self._channel.stream_stream(*method, **codecs))

    def _start_with_present(self, start: Callable[..., Any]) -> Callable[..., Any]:
        def call(requests: Any = None, **options: Any) -> Any:
            return start(requests, metadata=self._authorization.present, **options)

        return call

    async def _find(self) -> Metadata:
        try:
            return await self._authorization.find()
        except TokenUnavailable as error:
            raise make_error(str(error)) from error

    def _may_retry(self, error: grpc.aio.AioRpcError, metadata: Metadata) -> bool:
        if error.code() is not grpc.StatusCode.UNAUTHENTICATED:
            return False
        return self._authorization.note_refused(metadata, was_valid=False)


def make_error(details: str) -> grpc.aio.AioRpcError:
    """The error of a call that could not be made yet."""
    empty = grpc.aio.Metadata()
    return grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, empty, empty, details, "")


def find_reason(error: grpc.aio.AioRpcError) -> str:
    """The server's reason for a status, for programs."""
    trailers: Any = error.trailing_metadata() or ()
    found = [value for key, value in trailers if key == _REASON_KEY]
    return found[0] if found and isinstance(found[0], str) else ""
