"""Calls of a server's ``LogService``; a reading goes on where it ended.

gRPC and the API are imported when a server is read: who reads files needs neither.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from pipeline.source.errors import DataLoss, SourceError, Unreachable
from pipeline.source.server.server_access import ServerAccess

if TYPE_CHECKING:
    from muster.v1 import log_pb2

PATIENCE_S: Final = 60.0
"""How long a server may be away, as for a restart."""

_CALL_S: Final = 30.0
_WAIT_S: Final = 0.2
_WAIT_MAX_S: Final = 2.0
_MESSAGE_BYTES_MAX: Final = 256 << 20
"""A message is 256 KiB, or one batch: those of an imported log may be large."""

_OPTIONS: Final = (
    # A proxy of this machine's HTTP knows nothing of a server in its network.
    ("grpc.enable_http_proxy", 0),
    ("grpc.enable_retries", 0),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.max_receive_message_length", _MESSAGE_BYTES_MAX),
    # A machine that has gone says nothing.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
)


class LogCalls:
    """A connection to a server. All methods raise ``SourceError``.

    It waits ``patience_s`` for a server that cannot be reached, or is busy.
    """

    def __init__(
        self,
        access: ServerAccess,
        patience_s: float = PATIENCE_S,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._access = access
        self._patience_s = patience_s
        self._sleep = sleep
        self._channel = _open_channel(access)
        from muster.v1 import log_pb2_grpc

        self._stub: Any = log_pb2_grpc.LogServiceStub(self._channel)

    def describe(self) -> log_pb2.DescribeLogResponse:
        """The partitions of the log."""
        from muster.v1 import log_pb2

        patience = self._begin()
        while True:
            try:
                request = log_pb2.DescribeLogRequest()
                found: log_pb2.DescribeLogResponse = self._stub.DescribeLog(
                    request, timeout=_CALL_S, metadata=self._access.metadata
                )
                return found
            except _find_rpc_error() as error:
                patience.wait(error)

    def read(self, partition: int, **asked: int) -> Iterator[log_pb2.ReadLogResponse]:
        """The messages of a reading, which has the fields of ``ReadLogRequest``."""
        from muster.v1 import log_pb2

        request = log_pb2.ReadLogRequest(partition=partition, with_compacted=True)
        for field, value in asked.items():
            setattr(request, field, value)
        patience = self._begin()
        while True:
            call = self._stub.ReadLog(request, metadata=self._access.metadata)
            try:
                for message in call:
                    if message.batches or request.WhichOneof("start") == "offset":
                        request.offset = message.next_offset
                    patience = self._begin()
                    yield message
                return
            except _find_rpc_error() as error:
                patience.wait(error)
            finally:
                call.cancel()

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()

    def _begin(self) -> _Patience:
        return _Patience(self._access.target, self._patience_s, self._sleep)


class _Patience:
    """Waits until a server is back, longer each time, but not for ever."""

    def __init__(self, target: str, limit_s: float, sleep: Callable[[float], None]) -> None:
        self._target = target
        self._until = time.monotonic() + limit_s
        self._sleep = sleep
        self._wait_s = _WAIT_S

    def wait(self, error: Any) -> None:
        """Wait after a failed call, or raise what it means."""
        failure, may_pass = compute_failure(self._target, error)
        if not may_pass or time.monotonic() + self._wait_s > self._until:
            raise failure from error
        self._sleep(self._wait_s)
        self._wait_s = min(2 * self._wait_s, _WAIT_MAX_S)


def compute_failure(target: str, error: Any) -> tuple[SourceError, bool]:
    """What a failed call means, in one line, and whether it may pass."""
    from grpc import StatusCode

    detail = " ".join(str(error.details() or error.code().name).split())
    match error.code():
        case StatusCode.UNAVAILABLE if detail.startswith("COORDINATOR_"):
            return Unreachable(f"{target}: {detail}"), True
        case StatusCode.UNAVAILABLE:
            text = f"cannot reach {target}: is this the gRPC address of a server? ({detail})"
            return Unreachable(text), True
        case StatusCode.DEADLINE_EXCEEDED:
            return Unreachable(f"{target} does not answer: {detail}"), True
        case StatusCode.RESOURCE_EXHAUSTED:
            return SourceError(f"{target}: {detail}"), True
        case StatusCode.OUT_OF_RANGE:
            return DataLoss(f"{target}: {detail}"), False
        case StatusCode.PERMISSION_DENIED:
            advice = "allow it (muster acl), or log in as somebody else (serverConfig)"
            return SourceError(f"{target}: {detail}: {advice}"), False
        case StatusCode.UNIMPLEMENTED:
            return SourceError(f"{target} cannot be read: {detail}"), False
        case _:
            return SourceError(f"{target}: {detail}"), False


def _find_rpc_error() -> type[Exception]:
    from grpc import RpcError

    found: type[Exception] = RpcError
    return found


def _open_channel(access: ServerAccess) -> Any:
    import grpc

    if not access.is_secure:
        return grpc.insecure_channel(access.target, options=_OPTIONS)
    credentials = grpc.ssl_channel_credentials(access.trusted, access.key, access.chain)
    return grpc.secure_channel(access.target, credentials, options=_OPTIONS)
