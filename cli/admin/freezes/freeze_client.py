"""The calls of `muster group freeze` and `resume`; errors are raised as ``CommandError``s."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import grpc

from cli.admin_client import compute_command_error
from cli.client_security import Security
from cli.secure_channel import open_channel, read_security
from muster.v1 import freeze_pb2, freeze_pb2_grpc

Response = TypeVar("Response")


class FreezeClient:
    """One connection to a server, and one deadline for each call."""

    def __init__(
        self, channel: grpc.Channel, server: str, timeout_s: float, security: Security
    ) -> None:
        self._stub = freeze_pb2_grpc.FreezeServiceStub(channel)
        self._server = server
        self._timeout_s = timeout_s
        self._security = security

    def freeze(self, group_id: str, validate_only: bool) -> freeze_pb2.FreezeGroupResponse:
        """Freeze a group, or tell what it would be frozen with."""
        request = freeze_pb2.FreezeGroupRequest(
            group_id=group_id, validate_only=validate_only, request_id=str(uuid.uuid4())
        )
        return self._call(self._stub.FreezeGroup, request)

    def resume(self, group_id: str, validate_only: bool) -> freeze_pb2.ResumeGroupResponse:
        """Resume a group, or tell what would move."""
        request = freeze_pb2.ResumeGroupRequest(
            group_id=group_id, validate_only=validate_only, request_id=str(uuid.uuid4())
        )
        return self._call(self._stub.ResumeGroup, request)

    def _call(self, method: Callable[..., Response], request: Any) -> Response:
        try:
            return method(request, timeout=self._timeout_s)
        except grpc.RpcError as error:
            raise compute_command_error(
                error, self._server, self._timeout_s, self._security
            ) from error


@contextmanager
def connect_for_freezes(
    server: str, timeout_s: float, command_config: Path | None
) -> Iterator[FreezeClient]:
    """Connect to the server at ``HOST:PORT``, as ``cli.admin_client.connect`` does."""
    security = read_security(server, command_config)
    with open_channel(server, security) as channel:
        yield FreezeClient(channel, server, timeout_s, security)
