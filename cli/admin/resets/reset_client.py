"""The calls of `muster group reset` and `seek`; errors are raised as ``CommandError``s."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc

from cli.admin_client import compute_command_error
from cli.client_security import Security
from cli.secure_channel import open_channel, read_security
from muster.v1 import reset_pb2, reset_pb2_grpc


class ResetClient:
    """One connection to a server, and one deadline for each call."""

    def __init__(
        self, channel: grpc.Channel, server: str, timeout_s: float, security: Security
    ) -> None:
        self._stub = reset_pb2_grpc.ResetServiceStub(channel)
        self._server = server
        self._timeout_s = timeout_s
        self._security = security

    def reset_offsets(
        self, request: reset_pb2.ResetOffsetsRequest
    ) -> reset_pb2.ResetOffsetsResponse:
        """Set offsets, or with ``validate_only`` compute them."""
        try:
            return self._stub.ResetOffsets(request, timeout=self._timeout_s)
        except grpc.RpcError as error:
            raise compute_command_error(
                error, self._server, self._timeout_s, self._security
            ) from error


@contextmanager
def connect_for_resets(
    server: str, timeout_s: float, command_config: Path | None
) -> Iterator[ResetClient]:
    """Connect to the server at ``HOST:PORT``, as ``cli.admin_client.connect`` does."""
    security = read_security(server, command_config)
    with open_channel(server, security) as channel:
        yield ResetClient(channel, server, timeout_s, security)
